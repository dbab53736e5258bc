//! The cluster that tests of many database nodes stand on is one.

use postway_testkit::galera::GaleraCluster;

#[test]
fn a_killed_node_is_missed_by_nobody_and_comes_back_with_what_it_missed() {
    let cluster = GaleraCluster::start();
    let urls = cluster.create_database();
    assert!(urls.iter().all(|url| url.starts_with("mysql://root@localhost/test_0?socket=/")), "{urls:?}");
    cluster.run(0, "CREATE TABLE test_0.mail (id INT PRIMARY KEY)");

    cluster.run(0, "INSERT INTO test_0.mail VALUES (1)");
    let mails = "SET wsrep_sync_wait = 1; SELECT GROUP_CONCAT(id ORDER BY id) FROM test_0.mail";
    assert_eq!(cluster.run(2, mails), "1");

    cluster.kill(1);
    cluster.run(0, "INSERT INTO test_0.mail VALUES (2)");
    cluster.run(2, "INSERT INTO test_0.mail VALUES (3)");
    assert_eq!(cluster.run(0, "SHOW STATUS LIKE 'wsrep_cluster_size'"), "wsrep_cluster_size\t2");

    cluster.restart(1);
    assert_eq!(cluster.run(1, mails), "1,2,3");
    assert_eq!(cluster.run(0, "SHOW STATUS LIKE 'wsrep_cluster_size'"), "wsrep_cluster_size\t3");
}

#[test]
fn a_node_that_is_cut_off_or_frozen_is_out_and_catches_up() {
    let cluster = GaleraCluster::start();
    cluster.create_database();
    cluster.run(0, "CREATE TABLE test_0.mail (id INT PRIMARY KEY)");
    let size = |node| cluster.run(node, "SHOW STATUS LIKE 'wsrep_cluster_size'");
    let until_two = || {
        while size(0) != "wsrep_cluster_size\t2" {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let mails = "SET wsrep_sync_wait = 1; SELECT GROUP_CONCAT(id ORDER BY id) FROM test_0.mail";

    cluster.cut_off(1);
    until_two();
    cluster.run(0, "INSERT INTO test_0.mail VALUES (1)");
    // Each side notices by itself, one before the other.
    while cluster.run(1, "SHOW STATUS LIKE 'wsrep_cluster_status'") == "wsrep_cluster_status\tPrimary" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    cluster.reconnect(1);
    assert_eq!(cluster.run(1, mails), "1");

    cluster.freeze(2);
    until_two();
    cluster.run(0, "INSERT INTO test_0.mail VALUES (2)");
    cluster.thaw(2);
    while size(2) != "wsrep_cluster_size\t3" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(cluster.run(2, mails), "1,2");
}
