package fault

import "regexp"

// places are those of a machine and its network in a text, and what stands there without them. What a thing is called stays: the last
// part of a path, the socket of an engine among them.
var places = []struct {
	at   *regexp.Regexp
	left string
}{
	{regexp.MustCompile(`[a-z]+://[^\s"'()/](?:[^\s"'()]*[^\s"'(),.:;])?`), "…"},  // an address
	{regexp.MustCompile(`\b(dial|read|write) (?:tcp|udp)[46]? \S+:`), "$1:"},      // package net's errors
	{regexp.MustCompile(`\b(?:dial \w+: )?lookup \S+(?: on \S+)?: `), "lookup: "}, // and its resolver's
	{regexp.MustCompile(`(^|[\s"'(=>\[])(?:[a-z]+://)?/[^\s"':()]*/`), "$1…/"},    // folders
}

// WithoutPlaces is an error for those who do not operate the machine: its text and hint name no folders and no addresses of it. Those
// who do have the whole text in the log, which whoever calls this has told.
func WithoutPlaces(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: KindOf(err), Message: withoutPlaces(err.Error()), Hint: withoutPlaces(Hint(err)), Err: err}
}

func withoutPlaces(text string) string {
	for _, p := range places {
		text = p.at.ReplaceAllString(text, p.left)
	}
	return text
}
