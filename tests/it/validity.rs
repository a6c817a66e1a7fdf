//! The incremental validity check says what a full check says, whatever happens to a context.

use std::sync::Arc;

use proctor::context::validity::{Checker, check};
use proctor::context::{Context, Entry};
use proptest::prelude::*;

use crate::contexts::{self, Happening};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn following_a_context_is_as_good_as_looking_at_it(happenings in contexts::happenings()) {
        let counts = contexts::counts();
        let mut context = Context::default();
        let mut checker = Checker::default();
        for happening in &happenings {
            match happening {
                Happening::Append(origin, message) => {
                    let entry = Entry::new(origin.clone(), Arc::new(message.clone()), &counts);
                    checker.append(&entry);
                    context.append(entry);
                }
                Happening::Patch(changes) => {
                    let edits = contexts::plan(&context, changes, &counts);
                    checker.patch(&contexts::apply(&mut context, edits, &counts).unwrap());
                }
                Happening::Look => {
                    prop_assert_eq!(checker.findings(), check(context.entries()));
                }
            }
        }
        prop_assert_eq!(checker.findings(), check(context.entries()));
    }
}
