package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vetgo"
	"github.com/warpline-ml/warpline/internal/vetinput"
	"github.com/warpline-ml/warpline/internal/vetpy"
	"github.com/warpline-ml/warpline/train"
)

const vetLong = `Say what training programs do wrong, by reading them: losses kept with their graphs, values that are read in every step,
evaluations that record, values used when their batch is gone, and some thirty more. Nothing is run.

Programs in Python, and notebooks, are read as they are, and no Python is needed; of a folder all of them, but for those of
installed packages. Python 3.8 to 3.14, and PyTorch's own loops, Lightning's modules and Accelerate's loops are known. Programs in Go are
read as packages, by way of go vet, so the go command must be there: name packages (./...), files, or folders; each is read in
the module to which it belongs. go vet does the same with this program as its tool:

  go vet -vettool=$(which warpline) ./...

Each finding has the line, what to write there, what that gains, and how sure it is. A comment silences a line for a rule:

  losses.append(loss)  # warpline: ok R06
  losses = append(losses, loss) //warpline:ok R06

The exit status is 0 when nothing was found, 1 when something was, 2 when a file or a package could not be read.`

const vetExample = `  warpline vet train.py
  warpline vet ./...
  warpline vet --fix ./...
  warpline vet . --skip R13
  git show HEAD:train.py | warpline vet -
  warpline vet --explain R06
  warpline vet --json notebook.ipynb | jq -r '.findings[].fix'
  warpline vet --sarif . >vet.sarif`

// vetting are the flags of vet.
type vetting struct {
	skip    []string // ids, once run has looked the names up
	explain string
	rules   bool
	sarif   bool
	fix     bool
}

func newVet() *cobra.Command {
	v := &vetting{}
	cmd := &cobra.Command{
		Use: "vet FILE|DIR|PACKAGE...", Short: "Say what training programs do wrong, by reading them", Long: vetLong, Example: vetExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if v.explain != "" || v.rules {
				return from(0, 0)(cmd, args)
			}
			return from(1, -1)(cmd, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&v.skip, "skip", nil, "rules that are not asked, by id or name, with commas between them")
	f.StringVar(&v.explain, "explain", "", "show a rule: why, a program that is broken, and the same mended")
	f.BoolVar(&v.rules, "rules", false, "list all rules")
	f.BoolVar(&v.fix, "fix", false, "write the fixes that are mechanical into files of Go, and say what is left")
	f.BoolVar(&v.sarif, "sarif", false, "write findings as SARIF 2.1.0, which code hosts read")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s := newScreen(cmd)
		switch {
		case v.rules:
			return listRules(s)
		case v.explain != "":
			return explainRule(s, v.explain)
		}
		return v.run(cmd, s, args)
	}
	return cmd
}

// rule finds a rule, or says which there are.
func rule(name string) (vet.Rule, error) {
	if r, ok := vet.Find(name); ok {
		return r, nil
	}
	return vet.Rule{}, advice.Failf("warpline vet --rules lists them", "no rule is called %q", name)
}

func listRules(s *screen) error {
	for _, r := range vet.Rules() {
		if err := s.emit(map[string]string{"rule": r.ID, "name": r.Name, "why": r.Why, "in": r.In.String()}); err != nil {
			return err
		}
		s.say("%s  %s, in %s", r.ID, r.Name, r.In)
		s.say("     %s", r.Why)
	}
	return s.failure()
}

func explainRule(s *screen, name string) error {
	r, err := rule(name)
	if err != nil {
		return err
	}
	if err := s.emit(map[string]any{"rule": r.ID, "name": r.Name, "why": r.Why, "examples": r.Examples()}); err != nil {
		return err
	}
	s.say("%s %s: %s", r.ID, r.Name, r.Why)
	for _, e := range r.Examples() {
		fmt.Fprintf(s.text, "\nbroken, in %s:\n\n%s\nmended:\n\n%s", e.Name(), indented(strings.ReplaceAll(e.Broken, " want: ", " here: ")), indented(e.Mended))
	}
	return s.failure()
}

// indented is a program for the screen.
func indented(program string) string {
	var b strings.Builder
	for line := range strings.Lines(program) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// vetted is the JSON of a file, or of a package that could not be read.
type vetted struct {
	File     string      `json:"file"`
	Findings []vet.Found `json:"findings"`
	Error    string      `json:"error,omitempty"` // why it could not be read
	Note     string      `json:"note,omitempty"`  // that it was not followed to its end
}

// result is what all files and packages gave.
type result struct {
	all      []vet.InFile
	told     vet.Told
	files    int // that were read, by themselves
	packages int // of Go that were read
	python   int // files
	found    int
	unread   []vetgo.Unread
	foreign  []string // notebooks of a folder that are in other languages
	mended   int
}

// run reads files and packages. One that cannot be read is told, and the others are read all the same.
func (v *vetting) run(cmd *cobra.Command, s *screen, args []string) error {
	for i, name := range v.skip {
		r, err := rule(name)
		if err != nil {
			return err
		}
		v.skip[i] = r.ID
	}
	if v.sarif && s.json != nil {
		return advice.Failf("leave one of them out", "--sarif and --json both write to the standard output")
	}
	p := vetinput.Sort(args)
	if len(p.Python)+len(p.Packages)+len(p.Refused) == 0 {
		return vetinput.Nothing(p.Empty)
	}
	r := &result{told: vet.Told{}}
	for _, u := range p.Refused {
		if err := v.refuse(s, r, u); err != nil {
			return err
		}
	}
	if err := v.programs(cmd, s, p, r); err != nil {
		return err
	}
	if err := v.packages(cmd.Context(), s, p.Packages, r); err != nil {
		return err
	}
	for _, dir := range p.Loose {
		s.Note(dir + " has programs in Go that belong to no module, and were not read")
	}
	return v.end(s, r)
}

// refuse tells of one that cannot be read.
func (v *vetting) refuse(s *screen, r *result, u vetgo.Unread) error {
	r.unread = append(r.unread, u)
	return s.emit(vetted{File: u.Name, Findings: []vet.Found{}, Error: u.Err.Error()})
}

// programs reads those in Python, several at once, and tells of them in their order.
func (v *vetting) programs(cmd *cobra.Command, s *screen, p *vetinput.Input, r *result) error {
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if os.Getenv("GOGC") == "" { // nothing lives longer than its program: fewer collections are 30 % of the time, for some MB
		defer debug.SetGCPercent(debug.SetGCPercent(400))
	}
	i := 0
	for one := range vetinput.Check(ctx, p.Python, cmd.InOrStdin()) {
		if i++; len(p.Python) > 200 {
			s.passing(render.Progress{Label: "reading", Done: int64(i), Total: int64(len(p.Python)), Fields: []string{one.Name}})
		}
		var err error
		switch {
		case errors.Is(one.Err, vetpy.ErrLanguage) && p.Found[one.Name]: // as programs of other languages in a folder
			r.foreign = append(r.foreign, one.Name)
		case one.Err != nil:
			err = v.refuse(s, r, vetgo.Unread{Name: one.Name, Err: one.Err})
		default:
			r.files++
			r.python++
			err = v.tell(s, r, vet.InFile{File: one.Name, Found: one.Found, Note: one.Note})
		}
		if err != nil {
			return err
		}
	}
	s.clear()
	if cmd.Context().Err() != nil {
		return train.ErrInterrupted
	}
	return nil
}

// packages reads packages of Go.
func (v *vetting) packages(ctx context.Context, s *screen, requests []vetgo.Request, r *result) error {
	for _, q := range requests {
		var err error
		if q.Tool, err = os.Executable(); err != nil {
			return err
		}
		q.Skip = v.skip
		a, err := v.answer(ctx, s, q, r)
		switch {
		case ctx.Err() != nil:
			return train.ErrInterrupted
		case err != nil:
			a = &vetgo.Answer{Unread: []vetgo.Unread{{Name: q.Name(), Err: err}}}
		}
		if len(q.Files) > 0 && a.Packages > 0 {
			r.files += len(q.Files)
		} else {
			r.packages += a.Packages
		}
		for _, f := range a.Files {
			if err := v.tell(s, r, f); err != nil {
				return err
			}
		}
		for _, u := range a.Unread {
			if err := v.refuse(s, r, vetinput.Named(u)); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer is what is found in packages; with --fix what is left when all that is mechanical was mended.
func (v *vetting) answer(ctx context.Context, s *screen, q vetgo.Request, r *result) (*vetgo.Answer, error) {
	s.passing(render.Progress{Label: "go vet", Fields: []string{q.Name()}})
	defer s.clear()
	a, err := vetgo.Check(ctx, q)
	if err != nil || !v.fix || a.Mechanical() == 0 {
		return a, err
	}
	before := a.Findings()
	if err := vetgo.Fix(ctx, q, a); err != nil {
		return nil, advice.Explain(err, "what go vet -fix says; without --fix nothing is written")
	}
	a, err = vetgo.Check(ctx, q)
	if err == nil {
		r.mended += before - a.Findings()
	}
	return a, err
}

// tell shows what is found in a file, but for what nobody asks.
func (v *vetting) tell(s *screen, r *result, f vet.InFile) error {
	f.Found = slices.DeleteFunc(f.Found, func(one vet.Found) bool { return slices.Contains(v.skip, one.Rule) || r.told.Again(f.File, &one) })
	r.found += len(f.Found)
	r.all = append(r.all, f)
	line := vetted{File: f.File, Findings: f.Found, Note: f.Note}
	if f.Found == nil {
		line.Findings = []vet.Found{}
	}
	if err := s.emit(line); err != nil {
		return err
	}
	if f.Note != "" {
		s.Note(f.Note)
	}
	if v.sarif {
		return nil
	}
	for i := range f.Found {
		s.clear()
		s.finding(&f.Found[i])
	}
	return s.failure()
}

// finding shows one finding: where, the line, what is wrong, what to write.
func (s *screen) finding(f *vet.Found) {
	s.say("%s: %s [%s %s, %s]", f.Finding.Line, f.Title, f.Rule, f.Name, sureness(f.Confidence))
	fmt.Fprintf(s.text, "    %s\n", render.Truncate(f.Source, max(s.tableWidth()-6, 20)))
	for _, e := range f.Evidence {
		s.say("  also    %s", e.Text)
	}
	s.say("  fix     %s", f.Fix)
	s.say("  gain    %s", f.Gain.Text)
	s.say("  unless  %s", f.DisprovedBy)
	fmt.Fprintln(s.text)
}

func sureness(c finding.Confidence) string {
	switch c {
	case finding.High:
		return "sure"
	case finding.Medium:
		return "likely"
	}
	return "perhaps"
}

// end says how much was found in all.
func (v *vetting) end(s *screen, r *result) error {
	if v.fix && r.python > 0 {
		s.Note("--fix writes into programs in Go alone: in Python, what is found is for you to write")
	}
	unread := r.failure()
	if unread != nil && len(r.unread) > 1 || r.files+r.packages > 0 {
		for _, u := range r.unread {
			s.Note("not read: " + u.Err.Error())
		}
	}
	switch {
	case v.sarif:
		if err := s.unwritten(vet.WriteSARIF(s.text, version(), r.all, r.errors())); err != nil {
			return err
		}
	case r.files+r.packages > 0:
		if v.fix && r.python < r.files+r.packages {
			s.say("%s mended", plural(r.mended, "finding"))
		}
		s.say("%s in %s", plural(r.found, "finding"), r.read())
	}
	switch {
	case s.failure() != nil:
		return s.failure()
	case unread != nil:
		return unread
	case r.files+r.packages == 0:
		return vetinput.Nothing(r.foreign)
	case r.found > 0:
		return errFindings
	}
	return nil
}

// failure is the error of what could not be read: of one alone its own.
func (r *result) failure() error {
	hint := "the notes say at which line; this reads Python 3.8 to 3.14, and packages of Go that compile"
	switch {
	case len(r.unread) == 0:
		return nil
	case len(r.unread) == 1 && r.files+r.packages == 0:
		return advice.Explain(r.unread[0].Err, "this reads Python 3.8 to 3.14, and packages of Go that compile")
	case len(r.unread) == 1:
		hint = cmp.Or(advice.HintOf(r.unread[0].Err), hint)
	}
	return advice.Failf(hint, "%d of %d could not be read", len(r.unread), len(r.unread)+r.files+r.packages)
}

// errors are of what could not be read.
func (r *result) errors() (all []error) {
	for _, u := range r.unread {
		all = append(all, u.Err)
	}
	return all
}

// read says what was read, in words.
func (r *result) read() string {
	var parts []string
	if r.files > 0 || r.packages == 0 {
		parts = append(parts, plural(r.files, "file"))
	}
	if r.packages > 0 {
		parts = append(parts, plural(r.packages, "package")+" of Go")
	}
	return strings.Join(parts, " and ")
}
