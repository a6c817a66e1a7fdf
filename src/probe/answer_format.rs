//! The forms in which probes are answered.

/// The form in which a probe is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFormat {
    /// One value: a number, a name, an id.
    Value,
    /// A sentence.
    Sentence,
    /// Paths, one per line.
    Paths,
    /// A number and what it counts.
    Number,
    /// A choice, and why it was made.
    Choice,
    /// Yes or no, and why.
    YesNo,
    /// Yes or no, and nothing else.
    YesOrNo,
    /// Items of a list, one per line.
    Items,
    /// An error code, and the file and line it points at.
    Fault,
    /// Names in their order, one per line.
    Sequence,
    /// The user's sentence, word for word.
    Quote,
    /// The letter of one of two options.
    Letter,
    /// One tool call, or that none is made.
    Call,
}

impl AnswerFormat {
    /// Whether an answer of this form is a value by which it is told from another item's. Counts, lists, letters and
    /// arguments of calls are what other probes ask for too, or are guessed.
    pub(super) fn is_told_apart(self) -> bool {
        matches!(self, Self::Value | Self::Sentence | Self::Number | Self::YesNo)
    }

    /// What a question prompt asks for.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Value => "Answer with the value alone, exactly as it was written.",
            Self::Sentence => "Answer with one sentence.",
            Self::Paths => "Answer with the paths alone, one per line.",
            Self::Number => "Answer with the number and its unit alone.",
            Self::Choice => "Answer with the choice first, then the reason in one sentence.",
            Self::YesNo => "Answer with yes or no first, then the reason in one sentence.",
            Self::YesOrNo => "Answer with yes or no alone.",
            Self::Items => "Answer with the items alone, one per line, as they were written.",
            Self::Fault => "Answer with the code, then file and line as `file:line`.",
            Self::Sequence => "Answer with the names alone, one per line, the first one first.",
            Self::Quote => "Answer with the user's words alone, exactly as they were written.",
            Self::Letter => "Answer with the letter A or B alone.",
            Self::Call => "Answer with the one tool call alone, or with `ask`.",
        }
    }
}
