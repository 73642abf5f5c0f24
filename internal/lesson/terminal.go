package lesson

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/render"
)

// plainly is a text without the marks of Markdown but for those of code; behind the words of a link stands where it leads, here or in the lab.
func plainly(text string) string {
	text = marked(text, "`%s`", "%s", "%s")
	return links.ReplaceAllStringFunc(text, func(m string) string {
		words, at := links.FindStringSubmatch(m)[1], links.FindStringSubmatch(m)[2]
		if id, ok := strings.CutPrefix(at, "/learn/"); ok {
			id, _, _ = strings.Cut(id, "#")
			at = "`warpline learn read " + id + "`"
		} else if strings.HasPrefix(at, "/") {
			at = "`warpline lab`, " + at
		}
		return words + " (" + at + ")"
	})
}

// WriteText shows a lesson in a terminal of so many columns.
func (l *Lesson) WriteText(w io.Writer, width int) error {
	p := &printer{w: w, width: width}
	p.line("%s  (%d minutes)", l.Title, l.Minutes)
	p.line("%s\n", strings.Repeat("═", min(width, render.Width(l.Title))))
	p.para("Afterwards you can:", 0)
	for _, o := range l.Objectives {
		p.para("• "+o, 2)
	}
	for i := range l.Sections {
		p.section(&l.Sections[i])
	}
	if len(l.Sources) > 0 {
		p.line("\nSources")
	}
	for _, s := range l.Sources {
		p.para("• "+s, 2)
	}
	return p.err
}

// printer writes wrapped text, and keeps the first error.
type printer struct {
	w     io.Writer
	width int
	err   error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) para(text string, indent int) {
	p.line("%s", render.Wrap(plainly(text), p.width, indent))
}

func (p *printer) section(s *Section) {
	p.line("\n%s\n%s", s.Title, strings.Repeat("─", min(p.width, render.Width(s.Title))))
	for _, b := range s.Blocks {
		if b.Kind != "" {
			p.block(&b)
		}
	}
}

func (p *printer) block(b *Block) {
	switch b.Kind {
	case List:
		for _, item := range b.Items {
			p.para("• "+item, 2)
		}
	case Table:
		p.table(b.Rows)
	case Program, Cell:
		run := "    warpline learn run " + b.Text
		l, ok := lessons.Find(b.Text)
		if !ok || l.Run == nil {
			run = ""
		}
		p.line("  → warpline learn listing %s%s", b.Text, run)
		if ok && l.Wrong != nil {
			p.para("with a mistake, "+l.Wrong.What+": `listing "+l.Wrong.Name+"`, `run "+l.ID+" --wrong`", 4)
		}
	case Quick, Open:
		p.para("? "+b.Text, 2)
		p.para("  (answer) "+b.Answer, 4)
	case Artefact:
		p.para("To have in hand: "+b.Text, 2)
	case History:
		p.para("│ "+b.Text, 2)
	default:
		p.para(b.Text, 0)
	}
	p.line("")
}

// table shows rows in columns where they fit, and else one below another with the words of the head.
func (p *printer) table(rows [][]string) {
	t, wide := render.Table{}, make([]int, len(rows[0]))
	for i, r := range rows {
		row := make([]string, len(r))
		for k, c := range r {
			row[k] = plainly(c)
			wide[k] = max(wide[k], render.Width(row[k])+2)
		}
		if i == 0 {
			t.Header = row
		} else {
			t.Rows = append(t.Rows, row)
		}
	}
	all := 0
	for _, w := range wide {
		all += w
	}
	if all <= p.width {
		p.line("%s", strings.TrimSuffix(t.String(p.width), "\n"))
		return
	}
	for _, r := range t.Rows {
		text := "• " + r[0]
		for k, c := range r[1:] {
			text += "; " + t.Header[k+1] + ": " + c
		}
		p.para(strings.Replace(text, "; ", ". ", 1), 2)
	}
}

// WriteText shows a listing in a terminal: each explanation above the lines that it is of, as comments are.
func (s *Listing) WriteText(w io.Writer, width int) error {
	p := &printer{w: w, width: width}
	p.line("%s  %s\n", s.ID, s.Title)
	if s.Absent != "" {
		p.para("No program here: "+s.Absent+".", 0)
	}
	if s.About != "" {
		p.para(s.About, 0)
		p.line("")
	}
	why := ""
	for _, l := range s.Lines {
		if l.Why != "" && l.Why != why {
			why = l.Why
			p.para("  // "+why, 5)
		}
		p.line("%3d  %s", l.Number, strings.ReplaceAll(l.Code, "\t", "    "))
	}
	if s.Python != "" {
		p.line("\nin PyTorch:\n\n%s", strings.TrimSuffix(s.Python, "\n"))
	}
	if s.Command != "" {
		p.line("\nat the command line: %s", s.Command)
	}
	return p.err
}
