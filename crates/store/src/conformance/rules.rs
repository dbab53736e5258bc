//! The list of all rules, and the tests it makes.

/// Makes one test per rule. `$make_store` names an `async fn() -> (Arc<dyn Store>, Guard)` of the calling
/// module that gives a fresh, empty store; the guard outlives the store.
#[macro_export]
macro_rules! conformance_tests {
    ($make_store:ident) => {
        $crate::conformance_tests! { @expand $make_store
            accept {
                an_accepted_message_reads_back_whole
                answers_come_in_the_order_of_the_messages
                a_message_keeps_the_state_it_comes_with
                a_refused_message_starts_at_its_end
                due_work_wakes_its_account
                each_of_many_callers_is_answered_for_its_own_messages
                an_empty_call_is_no_work
            }
            accounts {
                a_tenant_is_created_once
                an_account_reads_back_whole
                an_account_id_is_taken_once_per_tenant
                an_update_needs_the_version_it_read
                of_concurrent_updates_one_wins
                an_account_with_unfinished_mail_stays
                mail_for_a_deleted_account_is_refused
                an_account_is_not_deleted_while_mail_is_accepted_for_it
                mail_without_an_account_counts_as_held
                a_default_account_stays
                accounts_are_listed_by_tenant_and_id
                a_changed_account_is_woken
            }
            audit {
                an_entry_reads_back_whole
                an_entry_is_written_only_with_its_change
                the_audit_log_goes_back_from_the_newest_page_by_page
                the_audit_log_is_trimmed_from_its_oldest_entry
                an_erased_address_is_no_target_any_more
            }
            blobs {
                the_same_content_has_one_name
                a_blob_in_use_is_not_condemned
                a_blob_that_was_in_use_is_condemned_once_nothing_refers_to_it
                a_condemned_name_is_never_given_out_again
                blobs_are_condemned_oldest_first
                a_reservation_and_a_sentence_that_meet_leave_one_name
            }
            bodies {
                a_body_in_a_blob_is_told_by_its_name
                a_blob_never_comes_with_its_claim
                a_blob_is_not_handed_over
                a_request_reads_back_as_it_was
                a_mail_and_its_request_read_back_as_they_were
                bodies_are_removed_where_the_fence_held
                a_recipient_deleted_meanwhile_is_told_at_the_claim
            }
            bulk {
                bulk_actions_read_back_whole_and_are_listed_from_the_latest
                a_slice_is_one_transaction
                a_bulk_action_does_not_end_before_its_second_tries
                of_concurrent_slices_one_is_done
                a_stopped_bulk_action_does_nothing_more
                a_tenant_has_a_bounded_number_of_running_bulk_actions
                checks_of_domains_are_kept_by_tenant
            }
            circuits {
                an_open_circuit_reads_back_whole
                open_circuits_are_listed
                a_circuit_opened_again_keeps_its_beginning
                a_closed_circuit_is_gone_and_wakes_its_account
                whatever_a_relay_said_is_kept
                a_deleted_account_takes_its_circuit_along
            }
            claim {
                due_messages_come_oldest_first
                what_the_sender_wishes_to_be_told_comes_with_the_claim
                what_cannot_go_now_is_left
                a_doubt_past_its_time_is_claimed
                a_fetch_at_the_head_holds_nobody_back
                a_claim_takes_no_more_than_its_room
                a_lane_in_order_gives_out_one_at_a_time
                urgent_lanes_go_first_and_old_ones_catch_up
                a_claim_is_written_with_lease_event_and_counters
                a_large_body_stays_behind
                each_account_is_served_by_its_own_room
                no_message_is_claimed_twice_by_eight_claimers
                an_attempt_is_for_the_pending_recipients
                a_doubt_is_claimed_as_a_resend_to_the_doubtful
                the_queue_state_names_due_accounts_and_the_next_time
            }
            collapse {
                a_newer_message_supersedes_the_one_that_waits
                other_keys_and_tenants_do_not_meet
                what_is_sent_or_being_sent_is_left
                what_waits_for_its_retry_is_superseded
                what_was_sent_or_is_in_doubt_stays_so_when_the_rest_is_superseded
                what_waits_to_be_sent_again_is_held_when_superseded
                what_is_superseded_while_it_is_sent_is_held_if_in_doubt
                in_one_call_the_last_wins
                a_repeat_supersedes_nothing
                of_twenty_concurrent_messages_with_one_key_one_waits
            }
            dedup {
                the_same_key_and_body_is_a_repeat
                the_same_key_with_another_body_is_a_conflict
                a_client_id_is_unique_in_its_tenant
                keys_of_other_tenants_and_kinds_do_not_meet
                the_idempotency_key_is_asked_before_the_client_id
                inside_one_call_the_first_wins
                a_refused_message_leaves_no_key_behind
                a_key_of_a_message_refused_in_the_same_call_is_free
                a_batch_under_the_key_of_another_is_refused_whole
                the_key_of_a_batch_outlives_a_refused_message
                what_was_seen_before_can_be_asked
                a_key_outlives_the_end_of_its_message
                of_fifty_concurrent_callers_with_one_key_one_is_stored
                a_conflict_disturbs_no_neighbour
            }
            dkim {
                a_signing_key_reads_back_whole
                a_domain_is_found_in_any_case
                a_selector_is_taken_once_per_domain_and_tenant
                a_signing_key_is_switched_and_sealed_anew
                a_deleted_signing_key_is_gone
                signing_keys_are_listed_by_domain_and_selector
            }
            erase {
                an_erased_address_takes_its_messages_along
                an_erased_address_is_taken_out_of_messages_to_others
                an_erasure_goes_slice_by_slice
            }
            fan_out {
                each_subscriber_is_told_what_it_asked_for
                each_page_is_told_once_whoever_calls
                many_subscribers_of_many_events_are_told_in_parts
                a_purge_takes_reports_along
            }
            fates {
                outcomes_of_many_messages_are_told_together
                it_is_told_how_far_telling_has_come
                the_latest_news_of_many_messages_come_together
                a_long_page_is_told_whole
            }
            fence {
                a_stale_token_changes_nothing
                a_stale_version_changes_nothing
                another_status_changes_nothing
                an_unknown_message_changes_nothing
                of_concurrent_changes_with_one_fence_one_wins
                a_second_change_in_one_call_sees_the_first
                a_refused_change_disturbs_no_neighbour
            }
            handover {
                an_accepted_message_fills_a_standing_claim
                a_standing_claim_is_used_up
                only_room_that_was_not_filled_stands
                a_later_claim_replaces_the_standing_one
                a_withdrawn_claim_takes_nothing
                a_changed_account_takes_nothing_by_its_old_claim
                what_is_not_due_is_not_handed_over
                a_large_message_is_not_handed_over
                a_repeat_takes_no_slot
                a_standing_claim_is_for_its_account_only
                handed_over_work_is_settled_like_any_other
                concurrent_callers_fill_exactly_the_room
            }
            held {
                mail_beyond_a_limit_is_held
                mail_of_an_account_at_fault_is_held
                mail_that_is_held_is_not_late
                mail_behind_several_gates_is_held_once
            }
            journal {
                what_happens_is_in_the_feed_in_order
                a_transaction_leaves_a_page_for_each_tenant
                what_did_not_happen_is_not_told
                every_way_to_happen_is_told
                places_are_given_out_a_few_at_a_time
                the_feed_goes_on_from_any_place
                a_reader_beside_writers_misses_nothing
                hours_are_counted_once
                what_happened_lately_is_counted_in_tens_of_seconds
                a_page_that_many_hear_of_is_told_whole
                reporters_are_woken
            }
            keys {
                a_key_is_found_by_its_digest
                a_key_is_found_by_its_id_with_its_verifier
                a_key_id_and_a_digest_are_taken_once
                keys_are_listed_by_tenant_oldest_first
                a_key_is_revoked_once_and_by_its_tenant_only
                the_last_use_of_a_key_only_moves_forward
            }
            destinations {
                a_claim_takes_no_more_than_a_destination_has_room_for
                mail_to_several_limited_domains_waits_for_all_of_them
                a_standing_claim_takes_no_mail_for_a_busy_destination
                a_waiting_message_is_moved_to_the_lane_of_its_destination
                lanes_of_destinations_stay_where_they_are
            }
            lanes {
                mail_in_many_lanes_is_all_found
                a_lane_without_messages_is_removed_and_made_again
                a_lane_that_is_used_again_stays
            }
            lease {
                work_of_a_dead_process_is_found
                work_of_a_living_process_is_found_only_past_the_backstop
                stalled_work_comes_longest_untouched_first
                stalled_work_tells_of_its_recipients
                ending_the_open_hides_neither_a_doubt_nor_what_was_sent
                ready_mail_of_a_clock_that_was_ahead_is_pulled_to_now
                attempts_beyond_an_accounts_longest_delay_are_pulled_to_now
                lost_work_is_given_back_once
                the_writes_of_a_process_that_comes_back_are_refused
                overdue_mail_is_found_while_it_waits
            }
            limits {
                a_claim_takes_what_is_left_of_the_limit
                a_limit_is_free_again_after_its_window
                minute_hour_and_day_hold_together
                limits_of_other_accounts_do_not_meet
                beyond_a_limit_that_rejects_work_is_flagged
                the_use_of_a_limit_is_told
                a_changed_limit_holds_at_once
                only_use_that_counts_no_more_is_forgotten
                use_goes_with_a_clock_that_is_set_forward
                use_of_times_to_come_counts_for_one_window_only
                a_change_of_time_that_was_long_on_its_way_frees_nothing
                a_clock_that_missed_a_step_forward_debits_nothing
                a_clock_that_missed_a_step_back_debits_nothing
                a_permit_from_before_the_clock_was_set_is_not_renewed
                use_that_counts_no_more_is_forgotten_in_slices
                eight_claimers_never_exceed_a_limit
            }
            links {
                a_link_reads_back_whole
                ended_links_are_forgotten
                many_ended_links_are_forgotten_at_once
            }
            nodes {
                a_heartbeat_registers_and_then_counts
                each_node_has_a_slot_of_its_own
                a_struck_node_is_gone_until_it_beats_again
                the_duties_of_a_struck_node_are_free
                a_duty_changes_hands_once
            }
            notifications {
                only_the_lowest_of_a_message_is_given_out
                a_settled_one_reads_back_whole
                what_follows_one_that_waits_waits_as_long
                a_dead_one_leaves_a_gap
                a_late_call_settles_nothing
                one_given_back_without_a_call_costs_nothing
                who_asked_to_be_left_alone_is
                each_subscriber_is_served_by_its_own_room
                what_a_dead_process_was_calling_is_given_back
                a_settled_one_is_sent_again_on_request
                the_history_tells_of_calls
                deliveries_go_back_from_the_newest
                no_notification_is_claimed_twice_by_eight_claimers
            }
            pauses {
                a_suspended_batch_is_left_and_others_go
                a_suspended_account_is_left_and_others_go
                a_suspended_tenant_is_left_and_others_go
                nothing_suspended_is_handed_over
                what_is_suspended_meanwhile_gets_no_permission
                a_pause_refuses_no_neighbour
                what_is_on_the_wire_finishes
                suspending_twice_changes_nothing
                batches_are_listed_with_what_waits
                held_messages_are_counted_once
                a_long_suspended_lane_hides_nobody
                any_number_of_suspended_batches_is_passed_over
                what_is_activated_is_woken
                a_deleted_account_takes_its_pause_along
            }
            permits {
                what_is_handed_over_is_debited_too
                callers_and_claimers_that_meet_share_the_limit
                what_waits_for_a_limit_is_not_overtaken
                a_refund_gives_the_permit_back_once
                a_permit_that_ran_out_unused_is_moved_to_now
                a_refused_change_refunds_nothing
                an_outcome_without_a_refund_keeps_the_debit
                a_stand_in_pays_from_its_own_limits
                a_stand_in_pays_for_what_is_handed_over
                a_suspended_account_stands_in_for_nobody
            }
            preparation {
                what_is_not_composed_is_not_dispatched
                preparation_of_a_clock_that_was_ahead_is_pulled_to_now
                a_claim_leases_what_waits_to_be_prepared
                each_tenant_has_its_own_room
                what_is_prepared_can_be_sent
                what_could_not_be_fetched_is_prepared_later
                what_is_refused_is_invalid
                what_was_refused_is_prepared_once_more_on_request
                a_lost_preparation_is_given_to_another
                a_withdrawal_wins_over_a_late_preparer
                what_waits_to_be_prepared_expires
                what_is_not_composed_is_superseded
                what_is_suspended_is_prepared_all_the_same
                a_suppressed_message_is_not_prepared
                preparers_are_woken
                no_message_is_prepared_twice_by_eight_preparers
            }
            read {
                no_read_crosses_tenants
                briefs_tell_of_many_what_a_message_tells_of_itself
                a_list_goes_back_from_the_newest_page_by_page
                each_filter_is_a_condition
                conditions_are_joined_by_and
                a_client_id_names_its_message
                the_latest_provider_id_is_shown
                doubts_that_wait_for_a_word_are_told_apart
                stats_count_what_is_there
            }
            recipients {
                a_known_recipient_reads_back_whole
                an_external_id_is_taken_once_per_tenant
                of_concurrent_claims_to_an_external_id_one_wins
                a_recipient_update_needs_the_version_it_read
                a_deleted_recipient_is_marked_and_stays_so
                recipients_are_listed_by_id_page_by_page
                recipients_are_listed_by_address_in_any_case
            }
            retention {
                a_message_that_was_told_goes_whole
                what_has_not_ended_stays
                every_end_is_one
                what_is_still_to_be_told_stays
                what_could_not_be_told_stays_for_longer
                what_waits_in_the_journal_stays
                what_was_written_late_stays_until_it_is_told
                what_is_old_does_not_wait_for_the_journal
                slices_are_bounded_and_of_one_tenant
                of_concurrent_calls_each_message_goes_once
                what_is_sent_again_stays
            }
            revive {
                what_waits_for_one_that_is_back_is_due_at_once
                what_died_is_sent_again_page_by_page_and_once
            }
            search {
                a_search_finds_all_page_by_page
                messages_are_found_by_what_became_of_them
                messages_are_found_by_what_holds_them
                messages_are_found_by_parts_of_addresses
                messages_are_found_by_their_external_id
                messages_are_found_by_a_foreign_message_id
                failures_are_found_by_code_and_hidden_subjects_not
                a_summary_names_the_first_recipient
            }
            oauth {
                tokens_are_written_by_whoever_knows_the_last_version
                tokens_go_with_their_account_mailbox_or_tenant
            }
            quotas {
                a_quota_is_leased_until_it_is_used_up
                of_many_nodes_none_leases_more_than_there_is
                a_warning_is_recorded_once_a_day_and_level
                days_long_past_are_forgotten
            }
            people {
                a_user_reads_back_whole
                a_name_and_an_identity_are_taken_once
                a_user_update_needs_the_version_it_read
                the_last_admin_stays
                a_users_sessions_are_listed_and_end
                lines_of_the_audit_log_form_a_chain
                a_trimmed_and_redacted_chain_is_whole
            }
            sessions {
                a_session_is_ended_once_and_alone
                an_ended_session_is_forgotten_when_its_time_is_over
            }
            settle {
                a_sent_message_is_written_whole
                a_retry_waits_for_its_time
                a_failure_ends_open_recipients
                a_replay_forgets_the_failure
                a_counter_not_named_stays
                a_late_answer_settles_a_doubt_by_its_token
                a_late_answer_is_refused_once_a_resend_is_claimed
                a_token_not_kept_is_gone
                a_waiting_message_is_cancelled_without_a_lease
                a_waiting_message_is_given_another_time
                history_has_no_gap
            }
            subscribers {
                a_subscriber_reads_back_whole
                a_subscriber_id_is_taken_once_per_tenant
                a_subscriber_update_needs_the_version_it_read
                a_deleted_subscriber_is_gone_with_what_it_was_to_be_told
                subscribers_are_listed_by_tenant_and_id
                a_tenants_own_subscriber_follows_its_settings
            }
            suppress {
                a_suppressed_recipient_is_recorded_and_not_sent_to
                a_suppressed_recipient_is_not_handed_over
                a_message_to_the_suppressed_alone_is_suppressed
                a_suppression_ends_with_its_time
                suppression_ignores_the_case_of_an_address
                a_suppression_that_was_kept_with_u_labels_holds
                a_suppression_after_acceptance_is_found_at_the_claim
                another_tenants_list_does_not_matter
                suppressions_are_listed_and_renewed
                suppressions_are_removed_and_forgotten
            }
            templates {
                a_template_reads_back_whole
                versions_follow_each_other
                of_concurrent_versions_with_one_number_one_is_made
                beyond_the_most_versions_the_oldest_go
                versions_are_listed_latest_first
                templates_are_listed_by_name_in_their_latest_version
                a_long_page_of_templates_is_whole
                a_deleted_template_is_gone_and_its_name_starts_anew
                a_deletion_leaves_no_version_behind
            }
            tenants {
                a_tenant_reads_back_whole
                a_tenant_update_needs_the_version_it_read
                a_deleted_tenant_is_marked_and_stays_so
                a_deleted_tenant_sends_nothing
                tenants_are_listed_by_id_page_by_page
                a_purge_goes_slice_by_slice_and_takes_all
                a_purge_takes_what_content_is_made_with
            }
            traces {
                keys_outlive_their_message_by_a_day
                traces_are_forgotten_when_they_end
                the_journal_is_trimmed_behind_what_is_told
                statistics_outlive_messages
            }
            wire {
                the_permission_is_given_once
                a_resend_is_told_with_its_permission
                a_permission_needs_the_token_and_the_version
                an_expired_message_gets_no_permission
                refused_recipients_are_noted_with_the_permission
                of_concurrent_workers_one_gets_the_permission
                a_stale_worker_is_refused_beside_the_right_one
            }
        }
        $crate::inbound_conformance_tests!($make_store);
        mod property {
            #[test]
            fn any_sequence_of_calls_keeps_the_books() {
                $crate::conformance::property::any_sequence_of_calls_keeps_the_books(super::$make_store);
            }

            #[test]
            fn no_window_of_sends_exceeds_its_limit() {
                $crate::conformance::windows::no_window_of_sends_exceeds_its_limit(super::$make_store);
            }
        }
    };
    (@expand $make_store:ident $($theme:ident { $($rule:ident)* })*) => {
        $(mod $theme {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $rule() {
                    let (store, _guard) = super::$make_store().await;
                    $crate::conformance::stage::open(&store).await;
                    $crate::conformance::$theme::$rule(&store).await;
                    store.close().await;
                    drop(store);
                }
            )*
        })*
    };
}
