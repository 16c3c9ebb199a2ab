package viewer

import (
	"regexp"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// Hints of the sessions are written for models, which call tools. People have buttons, and are told of those.

// peopleWords are the words of hints, and what is said for them here. Longer ones stand before those that they begin with.
var peopleWords = strings.NewReplacer(
	" (create_image)", "",
	" (close_session keeps its files)", "",
	"close_session one", "close one",
	"close_session this one", "close this one",
	"another session_id", "another session",
	", or interrupt_session", ", or interrupt it",
	"call again", "try again",
	"none of the user's machine: it writes there, and what it reads must be written there first", "none of your machine: it writes there, and what is not there can be uploaded",
)

// toolWords are what only models know, and no word of ours stands for: tools, and what they are given.
var toolWords = regexp.MustCompile(`\b((call|create|delete|execute|get|inspect|install|interrupt|list|read|restart|restore|write|close)_[a-z_]+|session_id)\b`)

// againWords are clauses of a cell that never ran: its button says so, to those who may run it and to nobody else.
var againWords = regexp.MustCompile(`^(or )?(call again|try again|run it again)$`)

// hintForPeople is a hint in the words of people, without what only tools can do.
func hintForPeople(hint string) string {
	return strings.TrimPrefix(fault.HintWithout(peopleWords.Replace(hint), toolWords), "or ") // to what is gone
}

// modelHintForPeople is the hint that a model gets with an error of its code, without the sentences that are about tools.
func modelHintForPeople(hint string) string {
	kept := slices.DeleteFunc(strings.SplitAfter(peopleWords.Replace(hint), ". "), toolWords.MatchString)
	return strings.TrimSpace(strings.Join(kept, ""))
}

// bodyForPeople is what people are told of an error: whole sentences, which can stand one behind the other.
func bodyForPeople(err error) fault.Body {
	body := fault.BodyOf(err)
	body.Message = sentence(strings.TrimPrefix(body.Message, "session_id: ")) // the form calls it a name
	body.Hint = sentence(hintForPeople(body.Hint))
	return body
}

// commonWord is a word at the beginning of a text that is no name of anything: those have other characters in them.
var commonWord = regexp.MustCompile(`^[a-z]+(['’][a-z]+)?([ ,;:.]|$)`)

// whoRan is who ran a cell, for people, who know where they are.
func whoRan(caller string) string {
	if caller == sessions.Person {
		return "a person"
	}
	return caller
}

// sentence is a text with a capital, where it begins with a common word, and a stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if commonWord.MatchString(text) {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if strings.HasSuffix(text, "…") || strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text
	}
	return text + "."
}
