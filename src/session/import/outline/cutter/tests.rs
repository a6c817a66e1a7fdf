//! What is cut, what is whole and what is put aside.

use super::*;

static FORMAT: Format = Format {
    name: "a",
    keys: &["arguments"],
    words: &["whole"],
    answers: &["response"],
    aside: &[("steps", &["shown"])],
    has_calls_in_text: true,
    signs: &["!"],
};

/// Cuts texts of more than four bytes, of which two stay; the rests are shown as `<0>`.
#[track_caller]
fn check(file: &str, expected: &str) {
    // However the bytes come.
    for size in [1, 2, 3, 7, 1_000] {
        let cut = Cut { above: 4, keep: 2 };
        let open = |at: u64| {
            let at = usize::try_from(at).expect("it is short");
            Ok(Box::new(&file.as_bytes()[at..]) as Box<dyn Read>)
        };
        let mut cutter = Cutter::new(&open, &FORMAT, cut, Marks::default()).expect("a text opens");
        cutter.chunk = vec![0; size];
        let mut given = String::new();
        cutter.read_to_string(&mut given).expect("it is UTF-8");
        let mut shown = given;
        for name in 0..cutter.values_aside.len() {
            let mark = format!("\"{ESCAPED}{VALUE}{name}{ESCAPED}\"");
            let raw: &RawValue = serde_json::from_str(&mark).expect("a mark is JSON");
            let value = cutter.list(raw).expect("it can be read again");
            shown = shown.replace(&mark, &format!("({})", value.expect("it is there")));
        }
        for (name, place) in cutter.marks.places.iter().enumerate() {
            let from = usize::try_from(place.offset).expect("it is short");
            let rest = format!("<{}>", &file[from..from + place.length]);
            shown = shown.replace(&format!("{ESCAPED}{name}{ESCAPED}"), &rest);
        }
        if cutter.is_odd().expect("it can be read again") {
            shown.push_str(" marked");
        }
        if cutter.answers > 0 {
            shown = format!("{shown} {} answers", cutter.answers);
        }
        assert_eq!(shown, expected, "{size} bytes at a time");
    }
}

#[test]
fn long_texts_are_cut_and_all_else_is_given_as_it_is() {
    check(r#"{"a":"12345"}"#, r#"{"a":"12<345>"}"#);
    check(
        r#"["1234", "12\"45" ,"12\\","1234567"]"#,
        r#"["1234", "12<\"45>" ,"12\\","12<34567>"]"#,
    );
    check(
        "{\"long key\"\n : \"long\\u0031text\"}",
        "{\"long key\"\n : \"lo<ng\\u0031text>\"}",
    );
    check(
        r#"{"arguments":"12345","a":"arguments","b":"12345"}"#,
        r#"{"arguments":"12345","a":"ar<guments>","b":"12<345>"}"#,
    );
    check(
        r#"["a whole one","\u0077hole"]"#,
        r#"["a whole one","\u0077hole"]"#,
    );
    // That a text is more than a word is seen of its beginning.
    check(r#"["ab c d", " abcd"]"#, r#"["ab c d", " a<bcd>"]"#);
    // Equal texts have equal names.
    check(r#"["12345","12345"]"#, r#"["12<345>","12<345>"]"#);
    check(r#"["12\ud83d45"]"#, r#"["12\ud83d45"]"#);
    check("\"12345\n\"123456\"", "\"12345\n\"12<3456>\"");
    check("\"12345\\\n\"123456\"", "\"12345\\\n\"12<3456>\"");
    check("\"12345", "\"12345");
    check("\"12345\" ", "\"12<345>\" ");
}

#[test]
fn what_looks_like_a_mark_is_told() {
    check("\"\u{10fffd}\"", "\"\u{10fffd}\" marked");
    check(r#""\uDBFF\uDFFD""#, r#""\uDBFF\uDFFD" marked"#);
    check(r#""\\udbff\\udffd""#, r#""\\<udbff\\udffd>" marked"#);
}

#[test]
fn answers_beside_requests_are_counted() {
    check(
        r#"[{"response":{"response":{"response":1}}},{"a":"response"}]"#,
        r#"[{"response":{"response":{"response":1}}},{"a":"re<sponse>"}] 1 answers"#,
    );
    check(
        "{\"response\":1}\n{\"response\" :1}",
        "{\"response\":1}\n{\"response\" :1} 2 answers",
    );
}

#[test]
fn values_that_are_read_one_at_a_time_are_put_aside() {
    check(
        r#"{"steps":[{"shown":[{"a":"12345"}, 7],"shown":"12345"},[{"shown":[1]}]],"shown":[2]}"#,
        r#"{"steps":[{"shown":([{"a":"12<345>"}, 7]),"shown":"12<345>"},[{"shown":[1]}]],"shown":[2]}"#,
    );
    let odd = r#"{"steps":[{"shown":["\ud83d"]}]}"#;
    check(odd, r#"{"steps":[{"shown":(["\ud83d"])}]} marked"#);
}

#[test]
fn what_the_model_says_is_whole_where_calls_stand_in_it() {
    check(
        r#"[{"role":"assistant","content":[{"text":"12345"}]},{"role":"user","content":"12345"}]"#,
        r#"[{"role":"assistant","content":[{"text":"12345"}]},{"role":"user","content":"12<345>"}]"#,
    );
    check(
        r#"[{"a":"12345","role":"assistant"}]"#,
        r#"[{"a":"12<345>","role":"assistant"}] marked"#,
    );
}

#[test]
fn a_text_is_whole_if_a_sign_in_it_is_not_in_its_beginning() {
    check(r#"["!bcdef","bcdef!"]"#, r#"["!b<cdef>","bcdef!"]"#);
}
