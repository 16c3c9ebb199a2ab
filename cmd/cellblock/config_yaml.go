package main

import (
	"errors"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"cellblock/internal/fault"
)

var (
	// yamlLine begins what the parser says, where it knows the line.
	yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)
	// yamlTwice is what it says of a key that stands twice.
	yamlTwice = regexp.MustCompile(`^mapping key (".*") already defined at line (\d+)$`)
	// yamlOther is what it says of a file that is no group of keys.
	yamlOther = regexp.MustCompile(`^cannot unmarshal .* into map\[string\]interface`)
)

// explainYAML says in our words what is wrong with a file that is not YAML, or not keys with values, and where.
func explainYAML(path string, err error) error {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	var several *yaml.TypeError
	if errors.As(err, &several) && len(several.Errors) > 0 {
		said = several.Errors[0] // once that is mended, the next is told
	}
	where := path
	if at := yamlLine.FindStringSubmatch(said); at != nil {
		where, said = path+", line "+at[1], said[len(at[0]):]
	}
	if twice := yamlTwice.FindStringSubmatch(said); twice != nil {
		return fault.New(fault.Invalid, "configuration: %s: the key %s stands there twice, in line %s too", where, twice[1], twice[2]).
			WithHint("Leave one of them, with all that belongs below it.")
	}
	if yamlOther.MatchString(said) {
		return fault.New(fault.Invalid, "configuration: %s: there are no keys with values", where).
			WithHint("Write one in each line, with a space after the colon, as addr: 127.0.0.1:8787.")
	}
	return fault.New(fault.Invalid, "configuration: %s: it is not YAML (%s)", where, said).
		WithHint("Look at that line and the one before: brackets and quotes that are not closed, tabs instead of spaces, a value with \": \" or \" #\" in it that is not in quotes.")
}
