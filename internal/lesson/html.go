package lesson

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/render"
)

var (
	marks = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\*([^* ][^*]*)\\*")
	links = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
)

// inline is a text with its marks as HTML.
func inline(text string) render.Markup {
	text = marked(html.EscapeString(text), "<code>%s</code>", "<strong>%s</strong>", "<em>%s</em>")
	return render.Markup(links.ReplaceAllString(text, `<a href="$2">$1</a>`))
}

// marked is a text with its marks as formats have them. Within code there are none.
func marked(text, code, strong, stressed string) string {
	return marks.ReplaceAllStringFunc(text, func(m string) string {
		switch at := marks.FindStringSubmatch(m); {
		case at[1] != "":
			return fmt.Sprintf(code, at[1])
		case at[2] != "":
			return fmt.Sprintf(strong, marked(at[2], code, strong, stressed))
		default:
			return fmt.Sprintf(stressed, marked(at[3], code, strong, stressed))
		}
	})
}

// piece is HTML that is put together.
type piece struct{ render.HTML }

// HTML is a lesson as the content of a page. Done says whether it was read.
func (l *Lesson) HTML(done bool) string {
	var p piece
	p.Add("<article data-lesson=\"%s\">\n<p class=\"minutes\">%d minutes</p>\n<h2>Afterwards you can</h2>\n<ul class=\"objectives\">\n", l.ID, l.Minutes)
	for _, o := range l.Objectives {
		p.Add("<li>%s</li>\n", inline(o))
	}
	p.Add("</ul>\n")
	if l.has(Cell) {
		p.Add("<p class=\"minutes\">Choose a line of a program to see what it does. Below a program are its numbers: change them and run it.</p>\n")
	}
	for i := range l.Sections {
		p.section(&l.Sections[i])
	}
	p.Add("<section id=\"sources\"><h2>Sources</h2>\n<ul>\n")
	for _, s := range l.Sources {
		p.Add("<li>%s</li>\n", inline(s))
	}
	p.Add("</ul></section>\n<p><button type=\"button\" data-action=\"done\" aria-pressed=\"%v\">I have read this lesson</button> <span role=\"status\" data-value=\"progress\">%s</span></p>\n</article>\n", done, read01(done))
	return p.String()
}

func read01(done bool) string {
	if done {
		return "read"
	}
	return "not read yet"
}

func (p *piece) section(s *Section) {
	p.Add("<section id=\"%s\">\n<h2>%s</h2>\n", s.ID, s.Title)
	for i := range s.Blocks {
		p.block(s, i)
	}
	p.Add("</section>\n")
}

func (p *piece) block(s *Section, i int) {
	b := &s.Blocks[i]
	switch b.Kind {
	case Paragraph:
		p.Add("<p>%s</p>\n", inline(b.Text))
	case History:
		p.Add("<aside class=\"history\" aria-label=\"history\"><p>%s</p></aside>\n", inline(b.Text))
	case List:
		p.Add("<ul>\n")
		for _, item := range b.Items {
			p.Add("<li>%s</li>\n", inline(item))
		}
		p.Add("</ul>\n")
	case Table:
		p.table(b.Rows)
	case Program:
		p.listing(b.Text)
	case Cell:
		p.listing(b.Text)
		p.cell(b.Text)
	case Quick, Open:
		p.Add("<details class=\"%s\" data-%s><summary>%s</summary><p>%s</p></details>\n", b.Kind, b.Kind, inline(b.Text), inline(b.Answer))
	case Artefact:
		p.Add("<p class=\"artefact\"><strong>To have in hand:</strong> %s</p>\n", inline(b.Text))
	}
}

func (p *piece) table(rows [][]string) {
	p.Add("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table of %s\"><table>\n", strings.Trim(strings.Join(rows[0], ", "), ", "))
	for i, r := range rows {
		kind, attributes := "td", render.Markup("")
		if i == 0 {
			kind, attributes = "th", ` scope="col"`
			p.Add("<thead>")
		}
		p.Add("<tr>")
		for _, c := range r {
			if c == "" { // axe-core wants words in a head
				p.Add("<td></td>")
				continue
			}
			p.Add("<%s%s>%s</%s>", kind, attributes, inline(c), kind)
		}
		p.Add("</tr>")
		if i == 0 {
			p.Add("</thead><tbody>")
		}
		p.Add("\n")
	}
	p.Add("</tbody></table></div>\n")
}

// listing is an annotated listing: each line a button that shows what it does. A mistake of it stands below.
func (p *piece) listing(id string) {
	s, err := Show(id)
	if err != nil {
		p.Add("<p>%s</p>\n", err.Error())
		return
	}
	p.Add("<figure class=\"listing\" data-listing=\"%s\" id=\"listing-%s\">\n<figcaption>%s: %s</figcaption>\n", s.ID, s.ID, s.ID, s.Title)
	if s.Absent != "" {
		p.Add("<p data-absent>%s</p>\n", inline("No program here: "+s.Absent+"."))
	}
	if s.About != "" {
		p.Add("<p>%s</p>\n", inline(s.About))
	}
	if len(s.Lines) > 0 {
		p.lines(s)
	}
	if s.Python != "" {
		open := ""
		if s.Absent != "" {
			open = " open"
		}
		p.Add("<details class=\"python\""+open+"><summary>the same in PyTorch</summary><pre tabindex=\"0\"><code>%s</code></pre></details>\n", s.Python)
	}
	if s.Command != "" {
		p.Add("<p>At the command line: <code>%s</code></p>\n", s.Command)
	}
	p.Add("</figure>\n")
	if l, ok := lessons.Find(id); ok && l.Wrong != nil {
		p.Add("<details class=\"wrong\"><summary>The same with a mistake: %s</summary>\n", l.Wrong.What)
		p.listing(l.Wrong.Name)
		p.Add("<p>What finds it: %s.", l.Wrong.Found)
		if l.Wrong.Rule != "" {
			p.Add(" In Python <code>warpline vet</code> finds it by rule %s without running it.", l.Wrong.Rule)
		}
		p.Add("</p></details>\n")
	}
}

// lines are a listing's, each with its explanation behind it.
func (p *piece) lines(s *Listing) {
	p.Add("<ol class=\"lines\">\n")
	for _, l := range s.Lines {
		code := strings.ReplaceAll(l.Code, "\t", "    ")
		if l.Why == "" {
			p.Add("<li><code>%s</code></li>\n", code)
			continue
		}
		at := fmt.Sprintf("why-%s-%d", s.ID, l.Number)
		p.Add("<li><button type=\"button\" data-line=\"%d\" aria-expanded=\"false\" aria-controls=\"%s\"><code>%s</code></button><p id=\"%s\" class=\"why\" hidden>%s</p></li>\n",
			l.Number, at, code, at, inline(l.Why))
	}
	p.Add("</ol>\n")
}

// Devices are those that a cell offers.
var Devices = []string{"cpu", "sim:0", "best"}

// cell is a form that runs a listing, with its mistake too where there is one.
func (p *piece) cell(id string) {
	l, ok := lessons.Find(id)
	if !ok || l.Run == nil {
		return
	}
	p.Add("<form class=\"cell\" data-cell=\"%s\" aria-label=\"run %s\">\n", id, id)
	for _, n := range l.Numbers {
		p.Add("<label>%s <input type=\"number\" data-param=\"%s\" name=\"%s\" min=\"%d\" max=\"%d\" value=\"%d\" aria-label=\"%s: %s\"></label>\n",
			n.What, n.Name, n.Name, n.Min, n.Max, n.Value, id, n.What)
	}
	p.Add("<label>device <select data-param=\"device\" name=\"device\" aria-label=\"%s: device\">", id)
	for _, d := range Devices {
		p.Add("<option>%s</option>", d)
	}
	p.Add("</select></label>\n")
	if l.Wrong != nil {
		p.Add("<label><input type=\"checkbox\" data-param=\"wrong\" name=\"wrong\" aria-label=\"%s: with the mistake\"> with the mistake</label>\n", id)
	}
	p.Add("<button type=\"button\" data-action=\"run\">run</button> <button type=\"button\" data-action=\"stop\" disabled>stop</button> <a data-action=\"export\" href=\"/api/cells/%s/export\" download>export as a Go folder</a>\n", id)
	p.Add("<pre role=\"log\" tabindex=\"0\" aria-label=\"output of %s\"></pre><p data-exit role=\"status\"></p>\n</form>\n", id)
}

// HTML is a final check as the content of a page.
func (q *Quiz) HTML() string {
	var p piece
	p.Add("<form data-quiz=\"%s\">\n<p>All questions must be answered before the check is scored. Above %d %% it is complete.</p>\n", q.ID, int(100*Enough))
	for i, question := range q.Questions {
		p.Add("<fieldset data-question=\"%d\">\n<legend>%d. %s</legend>\n", i+1, i+1, inline(question.Text))
		for k, c := range question.Choices {
			p.Add("<label><input type=\"radio\" name=\"q%d\" value=\"%d\"> %s</label>\n", i, k, inline(c))
		}
		p.Add("<p class=\"result\" role=\"status\" hidden></p>\n</fieldset>\n")
	}
	p.Add("<button type=\"submit\" data-action=\"check\" disabled>check</button>\n<p role=\"status\">score <output data-value=\"score\"></output> <span class=\"complete\" hidden>complete</span></p>\n</form>\n")
	if len(q.Open) > 0 {
		p.Add("<h2>In your own words</h2>\n<p>Write an answer first, then open the model answer to compare.</p>\n")
	}
	for i, b := range q.Open {
		p.Add("<div class=\"open\"><label for=\"open-%d\">%s</label>\n<textarea id=\"open-%d\" rows=\"4\"></textarea>\n<details data-open><summary>a model answer</summary><p>%s</p></details></div>\n", i, inline(b.Text), i, inline(b.Answer))
	}
	return p.String()
}
