package lesson

import (
	"html"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/examples/lessons"
)

// blocks calls f for each block of all lessons.
func blocks(f func(l *Lesson, s *Section, b *Block)) {
	for _, l := range All() {
		for i := range l.Sections {
			for k := range l.Sections[i].Blocks {
				f(l, &l.Sections[i], &l.Sections[i].Blocks[k])
			}
		}
	}
}

// TestLessons: eleven lessons in order, each whole.
func TestLessons(t *testing.T) {
	if len(All()) != 11 {
		t.Fatalf("%d lessons", len(All()))
	}
	for i, l := range All() {
		if l.ID != IDs[i] || l.Title == "" || l.Minutes < 10 || len(l.Objectives) < 3 || len(l.Sources) == 0 {
			t.Errorf("%s lacks a part of its head: %+v", l.ID, *l)
		}
		seen := map[string]bool{"sources": true}
		kinds := map[Kind]int{}
		for _, s := range l.Sections {
			if seen[s.ID] {
				t.Errorf("%s has two sections %s", l.ID, s.ID)
			}
			seen[s.ID] = true
			for _, b := range s.Blocks {
				kinds[b.Kind]++
			}
		}
		if kinds[Quick]+kinds[Open] == 0 || kinds[Program]+kinds[Cell]+kinds[Table] == 0 {
			t.Errorf("%s has no question, or nothing to look at: %v", l.ID, kinds)
		}
	}
}

// TestTables: rows are as long as their head.
func TestTables(t *testing.T) {
	blocks(func(l *Lesson, s *Section, b *Block) {
		for _, r := range b.Rows {
			if len(r) != len(b.Rows[0]) {
				t.Errorf("%s#%s: %q has %d cells, the head %d", l.ID, s.ID, r, len(r), len(b.Rows[0]))
			}
		}
	})
}

// TestListingsAreRead: each listing stands in a lesson, and what lessons name is there.
func TestListingsAreRead(t *testing.T) {
	read := map[string]bool{}
	blocks(func(l *Lesson, s *Section, b *Block) {
		if b.Kind != Program && b.Kind != Cell {
			return
		}
		found, ok := lessons.Find(b.Text)
		if !ok || b.Kind == Cell && found.Run == nil {
			t.Errorf("%s#%s has the %s %q", l.ID, s.ID, b.Kind, b.Text)
		}
		if read[b.Text] {
			t.Errorf("%s stands twice: its ids would, too", b.Text)
		}
		read[b.Text] = true
	})
	for _, l := range lessons.Listings {
		if !read[l.ID] {
			t.Errorf("no lesson has %s", l.ID)
		}
	}
}

// places are pages of the lab that lessons link to besides each other.
var places = []string{"/explore/architecture", "/explore/race", "/explore/transfer", "/explore/timeline", "/explore/memory", "/explore/trace", "/explore/kernel", "/explore/gpus"}

// TestLinks: passages that lessons and checks name are there.
func TestLinks(t *testing.T) {
	for _, l := range All() {
		for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(l.HTML(false), -1) {
			at, lesson := strings.CutPrefix(m[1], "/learn/")
			_, _, found := Passage(at)
			switch {
			case lesson && !found:
				t.Errorf("%s leads to the passage %s", l.ID, at)
			case !lesson && !strings.HasPrefix(m[1], "https://") && !strings.HasPrefix(m[1], "/api/cells/") && !slices.Contains(places, m[1]):
				t.Errorf("%s leads to %s", l.ID, m[1])
			}
		}
	}
	for _, q := range Quizzes() {
		for _, question := range q.Questions {
			if _, _, ok := Passage(question.Passage); !ok {
				t.Errorf("quiz %s leads to the passage %s", q.ID, question.Passage)
			}
		}
	}
}

// TestValues: numbers that texts name, against those computed by hand, and none that nobody names.
func TestValues(t *testing.T) {
	for name, want := range map[string]string{
		"a100.sms": "108", "a100.lanes": "6,912", "a100.clock": "1.41", "a100.tflops": "19.5", "a100.tensor": "312", "a100.tf32": "156", "a100.times": "16", "a100.overtf32": "2",
		"a100.bandwidth": "2,039", "a100.shared": "164", "h100.lanes": "16,896", "h100.tensors": "528", "h100.fp8": "1,979", "gtx1650.lanes": "896", "rtx4090.gbps": "1,008",
		"link.a100": "64", "link.4090": "31.5", "gpt.cpuyears": "681,000", "gpt.a100years": "34,900", "gpt.rate": "110.6", "gpt.share": "35", "matvec.macs": "1,048,576",
		"relu.elements": "524,288", "relu.warps": "16,384", "amdahl.99": "100", "batch.mb": "12.58", "batch.us": "393", "a100.perSM": "64", "h100.sms": "132", "relu.rounds": "75.85", "relu.mb": "4.19", "relu.us": "2.06", "floor.gib": "14.90", "amdahl.95": "20",
		"three.pictures": "19.267584", "three.matrix": "1.048576", "three.bias": "0.002048", "three.mb": "20.32", "three.mib": "19.38",
	} {
		if got, ok := Value(name); !ok || got != want {
			t.Errorf("%s is %q in place of %q", name, got, want)
		}
	}
	used := map[string]bool{}
	entries, err := fs.ReadDir(texts, "text")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(texts, "text/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			used[m[1]] = true
		}
	}
	for name := range values {
		if !used[name] {
			t.Errorf("no text names %s", name)
		}
	}
}

// TestListings: every line of a program is explained but for brackets, and its comments are gone from the code.
func TestListings(t *testing.T) {
	for _, l := range lessons.Listings {
		ids := []string{l.ID}
		if l.Wrong != nil {
			ids = append(ids, l.Wrong.Name)
		}
		for _, id := range ids {
			s, err := Show(id)
			if err != nil {
				t.Fatal(err)
			}
			if (l.Run == nil) != (len(s.Lines) == 0) {
				t.Errorf("%s has %d lines", id, len(s.Lines))
			}
			for i, line := range s.Lines {
				bare := strings.Trim(line.Code, "\t {}()") == "" || strings.TrimSpace(line.Code) == "return nil"
				if line.Number != i+1 || strings.Contains(line.Code, "// ") || !bare && line.Why == "" {
					t.Errorf("%s:%d: %q without an explanation", id, i+1, line.Code)
				}
			}
		}
	}
	for _, id := range []string{"", "L99", "L03Wrong", "../lessons"} {
		if _, err := Show(id); err == nil {
			t.Errorf("%q is a listing", id)
		}
	}
}

// corrections are what courses often get wrong, by the passage that has it right: what it says there, and what is said nowhere.
var corrections = []struct {
	id, at string
	says   []string
	never  string // a pattern
}{
	{"K1", "architecture#why", []string{"681,000 years", "34,900 years", "110.6 TFLOP/s", "35 %", "outside estimates"}, `35,000 years`},
	{"K2", "copies#bytes", []string{"19.267584 MB", "1.048576 MB", "0.002048 MB", "20.32 MB", "19.38 MiB"}, `22\.37`},
	{"K3", "copies#bytes", []string{"2,039 GB/s: 64 times", "1,008: 31.5 times"}, `60 times|60×`},
	{"K4", "architecture#elements", []string{"75.85", "bound by memory", "4.19 MB", "2.06 µs"}, `in 76 batches`},
	{"K5", "architecture#tensor", []string{"those of Volta", "312 TFLOP/s", "16 times its float32 rate"}, `12 times faster`},
	{"K6", "precision#why", []string{"16 times the float32 peak, 2 times that of TF32", "peaks of dense products", "Measure it"}, `2–8|2-8`},
	{"K7", "precision#autocast", []string{"activations that halve, not the memory as a whole", "a 16-bit copy of the weights comes on top", "averages"}, `halves the memory`},
	{"K8", "precision#autocast", []string{"those of float32 weights", "scaler.Step divides"}, `gradients (are|in) FP16`},
	{"K9", "precision#tf32", []string{"'high' is TF32 and 'medium' is bfloat16", "It is no mixed precision"}, `'medium' is TF32|simplified AMP`},
	{"K10", "precision#sources", []string{"torch.cuda.amp is a deprecated alias"}, `from torch\.cuda\.amp`},
	{"K11", "copies#pinned", []string{"does not pay", "twice as slow", "Pinning pays in the loader"}, `always pin`},
	{"K12", "memory#reserved", []string{"wholly", "it returns nothing: that is fragmentation", "expandable_segments"}, `empty_cache\(?\)? (defragments|frees fragment)`},
	{"K13", "memory#history", []string{"python -m torch.cuda._memory_viz trace_plot FILE -o out.html"}, `-m torch\.cuda\.memory_viz`},
	{"K14", "profiling#table", []string{"device_time_total, once cuda_time_total"}, `sort_by="cuda_time_total"`},
	{"K15", "timing#clock", []string{"loads modules, chooses algorithms and fills the allocator", "compiled by the driver"}, `first (run|iteration) compiles`},
	{"K16", "placement#agnostic", []string{"a batch on cuda:0 is not equal to it", "Compare .device.type"}, `!= torch\.device\("cuda"\)`},
	{"K17", "architecture#why", []string{"neither the number of parameters nor the machines were published"}, `trillions? of parameters`},
	{"K18", "profiling#window", []string{"wait passes steps over", "wait=1 is no warm-up"}, `wait=1[^.]*\(warmup\)`},
}

// words are what a page says, without marks.
func words(page string) string {
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, ""))
}

// TestCorrections: what courses often tell and is not so is told nowhere, listings included, and what is so stands in its passage.
func TestCorrections(t *testing.T) {
	var all strings.Builder
	for _, l := range All() {
		all.WriteString(words(l.HTML(false)))
	}
	for _, q := range Quizzes() {
		all.WriteString(words(q.HTML()))
	}
	for _, l := range lessons.Listings {
		if s, err := Show(l.ID); err == nil {
			all.WriteString(s.Python)
		}
	}
	seen := map[string]bool{}
	for _, c := range corrections {
		seen[c.id] = true
		if m := regexp.MustCompile(c.never).FindString(all.String()); m != "" {
			t.Errorf("%s: it says %q", c.id, m)
		}
		id, anchor, _ := strings.Cut(c.at, "#")
		l, ok := Find(id)
		if !ok {
			t.Errorf("%s: there is no lesson %s", c.id, id)
			continue
		}
		text := strings.Join(l.Sources, "\n")
		if anchor != "sources" {
			one := *l
			_, s, ok := Passage(c.at)
			if !ok {
				t.Errorf("%s: there is no passage %s", c.id, c.at)
				continue
			}
			one.Sections = []Section{*s}
			text = words(one.HTML(false))
		}
		for _, right := range c.says {
			if !strings.Contains(text, right) {
				t.Errorf("%s: %s does not say %q", c.id, c.at, right)
			}
		}
	}
	if len(seen) != 18 {
		t.Errorf("%d corrections of 18", len(seen))
	}
}

// TestQuizzes: nine and ten questions, each with one right choice of four, which does not always stand in one place.
func TestQuizzes(t *testing.T) {
	want := map[string]int{"a": 9, "b": 10}
	for _, q := range Quizzes() {
		if len(q.Questions) != want[q.ID] || len(q.Open) == 0 || q.Title == "" {
			t.Errorf("quiz %s: %d questions", q.ID, len(q.Questions))
		}
		places := map[int]int{}
		var right, wrong []int
		for _, question := range q.Questions {
			if len(question.Choices) != 4 || question.right < 0 || question.why == "" {
				t.Errorf("quiz %s: %+v", q.ID, question)
			}
			places[question.right]++
			right, wrong = append(right, question.right), append(wrong, (question.right+1)%4)
		}
		if len(places) < 3 {
			t.Errorf("quiz %s: right ones at %v", q.ID, places)
		}
		if r, err := q.Judge(right); err != nil || !r.Complete || r.Score != 1 {
			t.Errorf("all right: %+v, %v", r, err)
		}
		if r, err := q.Judge(wrong); err != nil || r.Complete || r.Right != 0 {
			t.Errorf("all wrong: %+v, %v", r, err)
		}
		for _, given := range [][]int{nil, right[1:], append(slices.Clone(right), 0), append(slices.Clone(right[1:]), 4), append(slices.Clone(right[1:]), -1)} {
			if r, err := q.Judge(given); err == nil {
				t.Errorf("%v: %+v", given, r)
			}
		}
	}
}

// TestEnough: three of four are 75 %, which is not more than 75 %.
func TestEnough(t *testing.T) {
	q := &Quiz{}
	for range 4 {
		q.Questions = append(q.Questions, Question{Choices: []string{"a", "b"}})
	}
	if r, err := q.Judge([]int{0, 0, 0, 1}); err != nil || r.Complete || r.Score != Enough {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRefused: mistakes in the files are told.
func TestRefused(t *testing.T) {
	for _, line := range []string{"no head", "colour: red"} {
		if err := new(Lesson).add(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
	l := &Lesson{Sections: []Section{{}}}
	if err := l.add(":quick what?"); err == nil {
		t.Error("a question without an answer is taken")
	}
	if _, err := expand("{=nothing.known}"); err == nil {
		t.Error("a value that is not there is taken")
	}
}

// TestMarks: marks within marks are ones, and those within code are not.
func TestMarks(t *testing.T) {
	for text, want := range map[string][2]string{
		"`a*b` and `c*d`":            {"<code>a*b</code> and <code>c*d</code>", "`a*b` and `c*d`"},
		"**use `x`**, *not* 2 * 3":   {"<strong>use <code>x</code></strong>, <em>not</em> 2 * 3", "use `x`, not 2 * 3"},
		"[here](/learn/x) <b> `<b>`": {`<a href="/learn/x">here</a> &lt;b&gt; <code>&lt;b&gt;</code>`, "here (`warpline learn read x`) <b> `<b>`"},
	} {
		if got := [2]string{string(inline(text)), plainly(text)}; got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestText: lessons and listings in a terminal have no line that is too long, but for code and addresses.
func TestText(t *testing.T) {
	for _, l := range All() {
		var b strings.Builder
		if err := l.WriteText(&b, 80); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "…  ") {
			t.Errorf("%s cuts cells of a table:\n%s", l.ID, &b)
		}
		if strings.Contains(b.String(), "**") || strings.Contains(b.String(), "](") || !strings.Contains(b.String(), l.Title) {
			t.Errorf("%s has marks left:\n%s", l.ID, &b)
		}
	}
	s, err := Show("L30Wrong")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.WriteText(&b, 100); err != nil || !strings.Contains(b.String(), "The mistake") || !strings.Contains(b.String(), "losses.append(loss)") {
		t.Errorf("%v\n%s", err, &b)
	}
}
