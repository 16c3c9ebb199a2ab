package notebook

import (
	"cmp"
	"encoding/json"
	"strings"

	"cellblock/kernels"
)

// maxLanguageText bounds what is taken of each thing that a kernel says of its language, in bytes.
const maxLanguageText = 1000

// languageInfo describes a language for programs that show or export code, by what a kernel said of it.
func languageInfo(name string, said kernels.LanguageInfo) Object {
	if said.Name == "" && name == "python" { // the kernel's words are not remembered, and are these
		said = kernels.LanguageInfo{FileExtension: ".py", MIMEType: "text/x-python", Lexer: "ipython3",
			Mode: json.RawMessage(`{"name":"ipython","version":3}`)}
	}
	info := Object{"name": cmp.Or(within(said.Name), name)}
	for key, text := range map[string]string{
		"version": said.Version, "file_extension": said.FileExtension, "mimetype": said.MIMEType, "pygments_lexer": said.Lexer,
	} {
		if text = within(text); text != "" {
			info[key] = text
		}
	}
	var mode any
	if len(said.Mode) <= maxLanguageText && json.Unmarshal(said.Mode, &mode) == nil {
		switch mode := mode.(type) {
		case string:
			info["codemirror_mode"] = mode
		case map[string]any:
			info["codemirror_mode"] = Object(mode)
		}
	}
	return info
}

// Comment is what begins a comment that is a line, in a language; empty for one that is not known.
func Comment(language string) string {
	switch strings.ToLower(language) {
	case "python", "bash", "r", "julia", "ruby", "perl":
		return "#"
	case "javascript", "typescript", "go", "rust", "c", "c++", "c++11", "c++14", "c++17", "c++20", "c#", "f#", "java", "kotlin", "scala", "swift", "php":
		return "//"
	case "lua", "haskell", "sql":
		return "--"
	}
	return ""
}

// within is a text that is not too long to be meant, else "".
func within(text string) string {
	if len(text) > maxLanguageText {
		return ""
	}
	return text
}
