package render

import (
	"html"
	"html/template"
	"regexp"
	"strings"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
)

// classes is the style of what is coloured by a style sheet. Chroma's own styles are 70 files that it reads as the program starts.
var classes = chroma.MustNewStyle("classes", nil)

var highlighter = chromahtml.New(chromahtml.WithClasses(true), chromahtml.PreventSurroundingPre(true), chromahtml.ClassPrefix("hl-"))

var (
	// A magic of IPython is a line that begins with % or !, or asks for help with a question mark.
	lineMagic = regexp.MustCompile(`^\s*(%[A-Za-z_]|!|\?{1,2}[A-Za-z_])|^\s*%?[A-Za-z_][\w.]*\?{1,2}\s*$`)
	cellMagic = regexp.MustCompile(`^%%([A-Za-z_]\w*)`)
)

// magicLanguages are the languages of what follows a cell magic; of others it is Python that is timed, captured and so on.
var magicLanguages = map[string]string{
	"bash": "bash", "sh": "bash", "script": "bash", "system": "bash", "html": "html", "HTML": "html", "svg": "xml", "SVG": "xml", "javascript": "javascript", "js": "javascript",
	"latex": "tex", "markdown": "markdown", "perl": "perl", "ruby": "ruby", "sql": "sql", "writefile": "", "file": "", "cython": "cython", "R": "r",
}

// Code is the source of a cell as coloured text, the inside of a <pre>. The language is one of ours ("python", "bash"), or any
// that is known by such a name; unknown ones get no colours.
func Code(language, source string) template.HTML {
	source, more := clip(source, maxText)
	made := template.HTML("")
	if language == "python" {
		made = ipython(source)
	} else {
		made = colour(language, source)
	}
	return made + remark(more)
}

// ipython colours Python with the magics that IPython adds to it.
func ipython(source string) template.HTML {
	if m := cellMagic.FindStringSubmatch(source); m != nil {
		first, rest, more := strings.Cut(source, "\n")
		language, known := magicLanguages[m[1]]
		if !known {
			language = "python"
		}
		if !more {
			return magic(first)
		}
		return magic(first) + "\n" + colour(language, rest)
	}
	var made, plain strings.Builder
	flush := func() {
		made.WriteString(string(colour("python", plain.String())))
		plain.Reset()
	}
	for line := range strings.Lines(source) {
		if lineMagic.MatchString(line) {
			flush()
			made.WriteString(string(magic(line)))
			continue
		}
		plain.WriteString(line)
	}
	flush()
	return template.HTML(made.String())
}

func magic(line string) template.HTML {
	return template.HTML(`<span class="hl-magic">` + html.EscapeString(line) + `</span>`)
}

// colour is code of a language that chroma knows, without an end of line that it does not have.
func colour(language, source string) template.HTML {
	escaped := func() template.HTML { return template.HTML(html.EscapeString(source)) }
	lexer := lexers.Get(language)
	if lexer == nil || language == "" || source == "" || len(source) > maxHighlighted {
		return escaped()
	}
	return guarded(escaped, func() (template.HTML, error) {
		tokens, err := chroma.Coalesce(lexer).Tokenise(&chroma.TokeniseOptions{State: "root", EnsureLF: false}, source)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		err = highlighter.Format(&b, classes, tokens)
		return template.HTML(b.String()), err
	})
}
