//! The list of rules about mail that comes in and what it leads to;
//! [`conformance_tests!`](crate::conformance_tests) makes their tests.

/// Makes one test per rule, as [`conformance_tests!`](crate::conformance_tests) does.
#[macro_export]
macro_rules! inbound_conformance_tests {
    ($make_store:ident) => {
        $crate::conformance_tests! { @expand $make_store
            findings {
                a_finding_is_written_whole
                a_late_finding_is_not_written
                the_worst_outcome_is_shown
                a_finding_about_a_message_that_is_gone_is_passed_over
                many_findings_are_written_together
                findings_and_work_on_a_message_do_not_meet
                a_receipt_is_kept_once
                certified_mail_without_a_receipt_times_out
                what_was_answered_early_does_not_time_out
                messages_are_traced_by_their_ids
                a_late_finding_reopens_a_reported_message
                old_mail_is_forgotten_and_not_taken_again
                an_erased_address_is_taken_out_of_mail_that_came_in
            }
            hooks {
                a_hook_is_found_by_its_token
                an_event_is_stored_once
                events_are_leased_in_equal_parts_and_once
                events_are_leased_within_a_number_of_bytes
                what_an_event_says_is_written_with_it
                an_event_whose_process_died_comes_back_alone
                what_sent_a_message_is_found_by_either_id
                old_events_are_removed
            }
            inbound {
                a_registered_mail_reads_back_whole
                a_page_is_registered_once
                of_concurrent_readers_one_registers_a_page
                mail_that_was_here_before_is_not_new
                mail_that_could_not_be_read_is_noted_once
                a_claim_takes_some_of_each_mailbox
                no_mail_is_claimed_twice_by_eight_claimers
                what_came_of_a_mail_reads_back_whole
                a_late_worker_settles_nothing
                lost_mail_is_given_back_once
                a_settled_mail_is_replayed
                a_resolved_mail_is_not_reminded_of
                mail_is_listed_newest_first
                routers_are_woken
                subscribers_are_told_of_mail_that_came
            }
            mailboxes {
                a_mailbox_reads_back_whole
                a_mailbox_is_taken_once_by_id_and_by_place
                a_mailbox_at_another_port_is_another_and_keeps_what_it_has_read
                of_concurrent_mailboxes_of_one_place_one_is_made
                a_mailbox_that_moves_forgets_its_cursor
                a_look_at_a_mailbox_is_noted
                a_deleted_mailbox_leaves_nothing_behind
                rules_are_kept_in_their_order
                contacts_are_found_by_their_names
                a_purge_takes_mailboxes_along
            }
            proofs {
                an_unproven_report_is_told_and_changes_nothing
                a_lesser_proof_never_shortens_a_suppression
                suppressions_of_many_reports_are_merged
                a_receipt_that_is_verified_later_counts_from_then_on
            }
            replays {
                what_a_mail_has_said_it_does_not_say_again
                settled_mail_is_replayed_by_a_filter
                a_rule_wakes_mail_that_waits_for_one
            }
            routes {
                routes_are_made_changed_ordered_and_deleted
                an_order_that_is_not_of_all_routes_changes_nothing
                of_concurrent_orders_one_stays
                the_dialogue_of_the_last_failed_attempt_is_kept
                a_dialogue_goes_with_its_message
            }
            routing {
                tenants_take_turns_in_a_claim
                what_is_in_hand_counts_against_a_share
                a_lost_life_is_told_from_a_late_try
            }
            streams {
                streams_are_made_changed_listed_and_deleted
                a_suppression_of_a_stream_holds_for_its_mail_alone
                a_suppression_of_a_pattern_or_of_all_tenants_holds
                scoped_suppressions_are_listed_renewed_and_removed
                a_reader_leaves_a_stream_and_comes_back
                a_decision_holds_without_its_message_and_tells_no_other_tenants
            }
            suppression_changes {
                changes_of_suppressions_are_in_the_feed
                a_readers_decision_changes_a_list
                subscribers_are_notified_of_changed_suppressions
                events_of_suppressions_are_erased_and_end
                hours_of_streams_are_counted_once
            }
        }
    };
}
