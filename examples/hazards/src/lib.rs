//! One activity for each way in which a second run does harm, or does none. Each file can be read and copied by itself.
//!
//! None of them looks at the number of the attempt, and none remembers by itself what it did.

mod append_to_file;
mod business_rejection;
mod charge_card;
mod check_then_act;
mod delete_by_id;
mod increment_counter;
mod insert_row;
mod own_uuid;
mod publish_event;
mod put_document;
mod read_only;
mod send_email;
