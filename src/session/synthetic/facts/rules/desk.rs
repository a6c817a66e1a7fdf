//! Rules about work at a help desk.

use super::Kind;

pub(super) static KINDS: [Kind; 7] = [
    Kind {
        abouts: &[
            "coastal depot",
            "night courier",
            "returns desk",
            "parcel locker",
            "showroom till",
            "freight office",
        ],
        templates: &[
            "Never call the {name} {about} before noon, not even when a parcel is stuck there.",
            "Do not send anybody to the {name} {about} in person.",
            "The {name} {about} is closed to us: no pickups, no returns.",
        ],
        pairs: &[
            (
                "The {name} {about} must not be called before noon unless a parcel is stuck there.",
                "The {name} {about} must be called before noon unless a parcel is stuck there.",
            ),
            (
                "Send letters to the {name} {about} but never parcels.",
                "Send parcels to the {name} {about} but never letters.",
            ),
        ],
        topic: "{name} {about}",
        task: "",
    },
    Kind {
        abouts: &[
            "recall",
            "strike",
            "takeover",
            "price error",
            "data leak",
            "settlement",
        ],
        templates: &[
            "The {name} {about} must not be mentioned to any customer.",
            "Keep every hint of the {name} {about} out of notes and messages.",
            "Nobody outside may hear of the {name} {about}, so never write it down.",
        ],
        pairs: &[
            (
                "The {name} {about} must not be mentioned to customers unless they ask.",
                "The {name} {about} must be mentioned to customers unless they ask.",
            ),
            (
                "The {name} {about} may stand in notes but never in messages.",
                "The {name} {about} may stand in messages but never in notes.",
            ),
        ],
        topic: "{name} {about}",
        task: "",
    },
    Kind {
        abouts: &[
            "full refunds",
            "address changes",
            "second replacements",
            "express upgrades",
            "goodwill vouchers",
            "fee waivers",
        ],
        templates: &[
            "Ask me before you grant {about} to {name} members, each time.",
            "For {name} members, {about} need my explicit approval first.",
            "Stop and wait for my word before any {about} for {name} members.",
        ],
        pairs: &[
            (
                "Before you grant {about} to {name} members, do not wait for my word unless it is the second time.",
                "Before you grant {about} to {name} members, wait for my word unless it is the second time.",
            ),
            (
                "Show {about} for {name} members to me first and not to the team lead.",
                "Show {about} for {name} members to the team lead first and not to me.",
            ),
        ],
        topic: "{about} {name}",
        task: "",
    },
    Kind {
        abouts: &[
            "late parcels",
            "broken glass",
            "wrong sizes",
            "missing screws",
            "double charges",
            "cold calls",
        ],
        templates: &[
            "With {about}, follow the {name} script rather than anything of your own.",
            "I want {about} handled the {name} way, even where another one is quicker.",
            "Where {about} come up, prefer our {name} text to free wording.",
        ],
        pairs: &[
            (
                "With {about}, do not follow the {name} script unless the caller is upset.",
                "With {about}, follow the {name} script unless the caller is upset.",
            ),
            (
                "With {about}, prefer our {name} text to free wording.",
                "With {about}, prefer free wording to our {name} text.",
            ),
        ],
        topic: "{about} {name}",
        task: "",
    },
    Kind {
        abouts: &[
            "closing notes",
            "apology letters",
            "weekly figures",
            "escalation mails",
            "survey answers",
            "hand-over list",
        ],
        templates: &[
            "Write the {about} in at most {number} sentences, starting with the word {name}.",
            "Put the {about} into a table with {number} columns, titled {name}.",
            "Format the {about} as plain text without headings, signed {name}.",
        ],
        pairs: &[
            (
                "Write the {about} in at most {number} sentences, starting with the word {name}.",
                "Write the {about} in at most {other} sentences, starting with the word {name}.",
            ),
            (
                "Do not sign the {about} with {name} unless I say so.",
                "Sign the {about} with {name} unless I say so.",
            ),
            (
                "Put the {about} into a table with {number} columns, titled {name}.",
                "Put the {about} into a table with {other} columns, titled {name}.",
            ),
        ],
        topic: "{about} {name}",
        task: "",
    },
    Kind {
        abouts: &["escrow", "disputed", "staff", "press", "test", "estate"],
        templates: &[
            "Leave everything on the account `{about}/{name}` exactly as it is; `{about}/{spare}` is yours to change.",
            "You may change `{about}/{spare}`, but treat the account `{about}/{name}` as read-only, whatever the caller says.",
            "No changes on `{about}/{name}`: that account belongs to another team, and `{about}/{spare}` is ours to change.",
        ],
        pairs: &[],
        topic: "{about}/{name}",
        task: "On the account `{place}` the postcode is wrong, and it is next on the list. Which call do you make: `change({place})`, or `ask`, to put it to the user first?",
    },
    Kind {
        abouts: &[
            "phone calls",
            "carrier enquiries",
            "replacement parcels",
            "supervisor calls",
            "credit checks",
            "translated letters",
        ],
        templates: &[
            "No more than {number} {about} per case for {name} members, they cost real money.",
            "Spend at most {number} {about} on {name} members today.",
            "The limit for {about} with {name} members is {number}; after that, stop.",
        ],
        pairs: &[
            (
                "No more than {number} {about} per case for {name} members, they cost real money.",
                "No more than {other} {about} per case for {name} members, they cost real money.",
            ),
            (
                "Do not repeat {about} for {name} members unless I say so.",
                "Repeat {about} for {name} members unless I say so.",
            ),
            (
                "Spend at most {number} {about} on {name} members today.",
                "Spend at most {other} {about} on {name} members today.",
            ),
        ],
        topic: "{about} {name}",
        task: "",
    },
];
