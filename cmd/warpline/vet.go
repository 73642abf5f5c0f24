package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vetgo"
	"github.com/warpline-ml/warpline/internal/vetpy"
	"github.com/warpline-ml/warpline/train"
)

const vetLong = `Say what training programs do wrong, by reading them: losses kept with their graphs, values that are read in every step,
evaluations that record, values used when their batch is gone, and some thirty more. Nothing is run.

Programs in Python, and notebooks, are read as they are, and no Python is needed; of a folder all of them, but for those of
installed packages. Python 3.8 to 3.14, and PyTorch's own loops, Lightning's modules and Accelerate's loops are known. Programs in Go are
read as packages, by way of go vet, so the go command must be there: name packages (./...), files, or a folder with its
module. go vet does the same with this program as its tool:

  go vet -vettool=$(which warpline) ./...

Each finding has the line, what to write there, what that gains, and how sure it is. A comment silences a line for a rule:

  losses.append(loss)  # warpline: ok R06
  losses = append(losses, loss) //warpline:ok R06

The exit status is 0 when nothing was found, 1 when something was, 2 when a file or a package could not be read.`

const vetExample = `  warpline vet train.py
  warpline vet ./...
  warpline vet --fix ./...
  warpline vet . --skip R13
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
}

// result is what all files and packages gave.
type result struct {
	all      []vet.InFile
	files    int // in Python that were read
	packages int // in Go that were read
	found    int
	unread   int
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
	paths, err := sorted(args)
	if err != nil {
		return err
	}
	files, err := vetpy.Files(paths.python)
	if err != nil {
		return advice.Explain(err, "name programs, notebooks, packages or folders that are there")
	}
	if len(files) == 0 && len(paths.packages) == 0 {
		return advice.Failf("name a program, a notebook, packages of Go, or a folder that has some", "%s has no programs in Python, and no module of Go", strings.Join(args, ", "))
	}
	r := &result{}
	if err := v.python(cmd.Context(), s, files, r); err != nil {
		return err
	}
	if err := v.packages(cmd.Context(), s, paths.packages, r); err != nil {
		return err
	}
	return v.end(s, r)
}

// sortedPaths are arguments by their language.
type sortedPaths struct {
	python   []string // programs, notebooks, and folders
	packages []vetgo.Request
}

// sorted tells Python and Go apart. Files go by their ends. A folder is looked through for programs in Python, and read as the
// packages below it where it belongs to a module of Go and has such programs. All else names packages.
func sorted(args []string) (p sortedPaths, err error) {
	var files, named []string
	for _, a := range args {
		info, err := os.Stat(a)
		switch base := strings.TrimSuffix(filepath.ToSlash(a), "/..."); {
		case err == nil && !info.IsDir() && strings.HasSuffix(a, ".go"):
			files = append(files, a)
		case err == nil && info.IsDir():
			p.python = append(p.python, a)
			if vetgo.HasPackages(a) {
				p.packages = append(p.packages, vetgo.Request{Dir: a, Patterns: []string{"./..."}})
			}
		case err == nil || vetpy.IsProgram(a) || strings.HasSuffix(a, ".go"):
			p.python = append(p.python, a) // that it is missing, or no program, is said there
		case base != filepath.ToSlash(a) && isFolder(base):
			p.packages = append(p.packages, vetgo.Request{Dir: base, Patterns: []string{"./..."}})
		case strings.HasPrefix(a, "."):
			return p, advice.Explain(err, "name programs, notebooks, packages or folders that are there")
		default:
			named = append(named, a)
		}
	}
	for _, patterns := range [][]string{files, named} {
		if len(patterns) > 0 {
			p.packages = append(p.packages, vetgo.Request{Patterns: patterns})
		}
	}
	return p, nil
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// python reads programs in Python.
func (v *vetting) python(ctx context.Context, s *screen, files []string, r *result) error {
	for i, name := range files {
		if ctx.Err() != nil {
			return train.ErrInterrupted
		}
		if len(files) > 200 {
			s.passing(render.Progress{Label: "reading", Done: int64(i), Total: int64(len(files)), Fields: []string{name}})
		}
		found, err := vetpy.CheckFile(name)
		if err != nil {
			r.unread++
		} else {
			r.files++
		}
		if err := v.tell(s, r, vet.InFile{File: name, Found: found}, err); err != nil {
			return err
		}
	}
	s.clear()
	return nil
}

// packages reads packages of Go.
func (v *vetting) packages(ctx context.Context, s *screen, requests []vetgo.Request, r *result) error {
	for _, q := range requests {
		var err error
		if q.Tool, err = os.Executable(); err != nil {
			return err
		}
		q.Skip = v.skipped()
		a, err := v.answer(ctx, s, q, r)
		switch {
		case ctx.Err() != nil:
			return train.ErrInterrupted
		case err != nil:
			return err
		}
		r.packages += a.Packages
		for _, f := range a.Files {
			if err := v.tell(s, r, f, nil); err != nil {
				return err
			}
		}
		for _, err := range a.Unread {
			r.unread++
			name, _, _ := strings.Cut(err.Error(), ":")
			if err := v.tell(s, r, vet.InFile{File: name}, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer is what is found in packages; with --fix what is left when all that is mechanical was mended.
func (v *vetting) answer(ctx context.Context, s *screen, q vetgo.Request, r *result) (*vetgo.Answer, error) {
	s.passing(render.Progress{Label: "go vet", Fields: []string{q.Dir}})
	defer s.clear()
	a, err := vetgo.Check(ctx, q)
	if err != nil || !v.fix || a.Mechanical() == 0 {
		return a, err
	}
	before := a.Findings()
	if err := vetgo.Fix(ctx, q); err != nil {
		return nil, advice.Explain(err, "what go vet -fix says; without --fix nothing is written")
	}
	a, err = vetgo.Check(ctx, q)
	if err == nil {
		r.mended += before - a.Findings()
	}
	return a, err
}

// skipped are the ids of the rules that nobody asks and that programs in Go can break.
func (v *vetting) skipped() (ids []string) {
	for _, id := range v.skip {
		if r, ok := vet.Find(id); ok && r.In.Has(vet.Go) {
			ids = append(ids, id)
		}
	}
	return ids
}

// tell shows what is found in a file, but for what nobody asks.
func (v *vetting) tell(s *screen, r *result, f vet.InFile, err error) error {
	f.Found = slices.DeleteFunc(f.Found, func(f vet.Found) bool { return slices.Contains(v.skip, f.Rule) })
	r.found += len(f.Found)
	r.all = append(r.all, f)
	line := vetted{File: f.File, Findings: f.Found}
	if f.Found == nil {
		line.Findings = []vet.Found{}
	}
	if err != nil {
		line.Error = err.Error()
	}
	if err := s.emit(line); err != nil {
		return err
	}
	if err != nil {
		s.Note(err.Error() + ": not read")
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
	if v.sarif {
		if err := s.unwritten(vet.WriteSARIF(s.text, version(), r.all)); err != nil {
			return err
		}
	} else {
		if v.fix {
			s.say("%s mended", plural(r.mended, "finding"))
		}
		s.say("%s in %s", plural(r.found, "finding"), r.read())
	}
	switch {
	case s.failure() != nil:
		return s.failure()
	case r.unread > 0:
		return advice.Failf("the notes say at which line; this reads Python 3.8 to 3.14, and packages of Go that compile", "%d of %d could not be read", r.unread, r.unread+r.files+r.packages)
	case r.found > 0:
		return errFindings
	}
	return nil
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
