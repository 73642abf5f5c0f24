package lesson

import (
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/examples/lessons"
)

// Line is a line of a listing with its explanation.
type Line struct {
	Number int    `json:"line"` // from 1
	Code   string `json:"code"`
	Why    string `json:"why,omitempty"` // "" of lines that are only brackets or empty
}

// Listing is a program as it is shown: without the comments, which are the explanations of the lines below them.
type Listing struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	About   string `json:"about"` // the function's comment
	Lines   []Line `json:"lines"`
	Python  string `json:"python,omitempty"` // what it is in PyTorch
	Command string `json:"command,omitempty"`
	Absent  string `json:"absent,omitempty"`
}

// Show is the listing with an id, as L08 or L09Wrong.
func Show(id string) (*Listing, error) {
	base, wrong := strings.CutSuffix(id, "Wrong")
	l, ok := lessons.Find(base)
	if !ok || wrong && l.Wrong == nil {
		return nil, fmt.Errorf("no listing is called %q; they are L01 to L%02d", id, len(lessons.Listings))
	}
	s := &Listing{ID: id, Title: l.Title, Command: l.Command, Absent: l.Absent}
	if wrong {
		s.Title, s.Command = l.Wrong.What, ""
	}
	if text, err := fs.ReadFile(programs, "python/"+id+".py"); err == nil {
		s.Python = string(text)
	}
	if l.Run == nil {
		return s, nil
	}
	text, err := fs.ReadFile(programs, strings.ToLower(base)+".go")
	if err != nil {
		return nil, err
	}
	doc, body, err := function(string(text), id)
	if err != nil {
		return nil, err
	}
	s.About = doc
	s.Lines = annotate(body + helpers(string(text), body))
	return s, nil
}

var declared = regexp.MustCompile(`(?m)^func ([a-z]\w*)\(`)

// helpers are the functions of a file that a body calls, with their comments, one behind another.
func helpers(file, body string) (all string) {
	for _, m := range declared.FindAllStringSubmatch(file, -1) {
		if !strings.Contains(body, m[1]+"(") {
			continue
		}
		if doc, source, err := function(file, m[1]); err == nil {
			all += "\n// " + doc + "\n" + source
		}
	}
	return all
}

// function is the comment and the source of a function in a file that gofmt has written.
func function(file, name string) (doc, source string, err error) {
	at := strings.Index(file, "\nfunc "+name+"(")
	if at < 0 {
		return "", "", fmt.Errorf("no function %s", name)
	}
	source, _, _ = strings.Cut(file[at+1:], "\n}\n")
	before := strings.Split(file[:at], "\n")
	first := len(before)
	for first > 0 && strings.HasPrefix(before[first-1], "//") {
		first--
	}
	var words []string
	for _, line := range before[first:] {
		words = append(words, strings.TrimPrefix(line, "// "))
	}
	return strings.Join(words, " "), source + "\n}\n", nil
}

// accepted is how a program tells warpline vet that a line is meant, which learners need not see.
var accepted = regexp.MustCompile(`\s*//warpline:ok .*$`)

// annotate takes comments out of a source and gives them to the lines below, up to the next comment.
func annotate(source string) (lines []Line) {
	why, fresh := "The function's head: the device and its modes, the numbers that may be changed, and where to print.", false
	for _, code := range strings.Split(strings.TrimSuffix(source, "\n"), "\n") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(code), "// "); ok {
			if fresh {
				text = why + " " + text
			}
			why, fresh = text, true
			continue
		}
		fresh = false
		line := Line{Number: len(lines) + 1, Code: accepted.ReplaceAllString(code, "")}
		switch trimmed := strings.Trim(code, "\t {}()"); trimmed {
		case "", "else", "return nil":
		case "return err":
			line.Why = "An error ends the program with what happened and what to do."
		default:
			line.Why = why
		}
		lines = append(lines, line)
		if len(lines) == 1 {
			why = "" // the lines below have explanations of their own, which a test sees
		}
	}
	return lines
}

// ListingID is the id that listings have of one as people write it: L08 of l8, L30Wrong of l30wrong.
func ListingID(text string) string {
	number, wrong := strings.CutSuffix(strings.ToLower(text), "wrong")
	n, err := strconv.Atoi(strings.TrimPrefix(number, "l"))
	if err != nil {
		return text
	}
	id := fmt.Sprintf("L%02d", n)
	if wrong {
		id += "Wrong"
	}
	return id
}
