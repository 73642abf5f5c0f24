package vetgo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/vet"
)

// IsAsked tells whether a program is started by go vet as its tool: asked for its version or its flags, or with the description
// of a package as its last argument.
func IsAsked(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	asks := last == "-V=full" || last == "-flags" || strings.HasSuffix(last, ".cfg")
	return asks && !slices.ContainsFunc(args[:len(args)-1], func(a string) bool { return !strings.HasPrefix(a, "-") })
}

// Request is what Check reads.
type Request struct {
	Tool     string   // the program that serves: this one
	Dir      string   // from where patterns are meant
	Patterns []string // of packages; or
	Files    []string // of Dir, by their last names: what is found in these alone
	Skip     []string // rules that are not asked, by id, also of other languages
}

// Name is what people call what is asked for.
func (r Request) Name() string {
	switch {
	case len(r.Files) > 0:
		return filepath.Join(r.Dir, r.Files[0])
	case r.Dir != "":
		return r.Dir
	}
	return r.Patterns[0]
}

// Answer is what was found in packages.
type Answer struct {
	Files    []vet.InFile // that have findings, in the order of their names
	Packages int          // that were read
	Unread   []Unread     // others, in the order of their names

	asked *list
	args  []string // what go vet can read, for Fix
}

// Unread is a package, or a file, that could not be read.
type Unread struct {
	Name string
	Err  error
}

// Findings is how many there are.
func (a *Answer) Findings() int { return a.count(func(vet.Found) bool { return true }) }

// Mechanical is how many of them go vet -fix can mend.
func (a *Answer) Mechanical() int { return a.count(func(f vet.Found) bool { return f.Mechanical }) }

func (a *Answer) count(is func(vet.Found) bool) (n int) {
	for _, f := range a.Files {
		for _, one := range f.Found {
			if is(one) {
				n++
			}
		}
	}
	return n
}

// Check runs go vet over packages, with this program as its tool, and reads what it says. The error is of the go command.
func Check(ctx context.Context, r Request) (*Answer, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, advice.Failf("install Go from go.dev/dl, or put it in PATH", "programs in Go are read by way of go vet, and the go command is not there")
	}
	if len(r.Files) == 0 {
		return r.check(ctx, r.Patterns)
	}
	return r.checkFiles(ctx)
}

// checkFiles reads files as a part of their package, or where that does not compile, or leaves them out by its constraints, by
// themselves.
func (r Request) checkFiles(ctx context.Context) (*Answer, error) {
	whole, err := r.check(ctx, []string{"."})
	if err != nil || len(whole.Unread) == 0 && whole.asked.has(r.Files) {
		return whole, err
	}
	alone, err := r.check(ctx, r.Files)
	// What is wrong with a package may be that several of its files are programs of their own.
	if err != nil || len(alone.Unread) == 0 || !whole.asked.has(r.Files) || strings.Contains(whole.Unread[0].Err.Error(), "redeclared") {
		return alone, err
	}
	return whole, nil
}

// check reads what patterns name: all packages that can be, and why others cannot.
func (r Request) check(ctx context.Context, patterns []string) (*Answer, error) {
	l, err := r.list(ctx, patterns)
	if err != nil {
		return nil, err
	}
	a := &Answer{Unread: l.unread, asked: l, args: patterns}
	if len(l.unread) > 0 {
		a.args = l.paths() // go vet reads nothing at all where it cannot find what one of them imports
	}
	h := &heard{request: r, asked: l, found: map[string][]vet.Found{}, wrong: map[string]string{}, read: map[string]bool{}}
	for part := range slices.Chunk(a.args, mostArgs) {
		stdout, stderr, err := r.vet(ctx, "-json", part)
		if err != nil {
			return nil, err
		}
		h.complaints(stderr)
		if err := h.findings(stdout); err != nil {
			return nil, err
		}
	}
	h.answer(a)
	return a, r.bare(ctx, a)
}

// bare adds what is found in packages without their tests, where these cannot be found.
func (r Request) bare(ctx context.Context, a *Answer) error {
	for _, p := range a.asked.bare {
		alone := r.alone(p)
		b, err := alone.check(ctx, alone.Files)
		if err != nil {
			return err
		}
		a.Files, a.Packages = append(a.Files, b.Files...), a.Packages+b.Packages
	}
	return nil
}

// alone asks for a package without its tests.
func (r Request) alone(p *listed) Request {
	return Request{Tool: r.Tool, Dir: p.Dir, Files: slices.Concat(p.GoFiles, p.CgoFiles), Skip: r.Skip}
}

// mostArgs is how many packages one go vet is given: command lines have their limits.
const mostArgs = 200

// Fix has go vet write the fixes that are mechanical into the files of an answer to the request.
func Fix(ctx context.Context, r Request, a *Answer) error {
	for part := range slices.Chunk(a.args, mostArgs) {
		if err := r.fix(ctx, part); err != nil {
			return err
		}
	}
	for _, p := range a.asked.bare {
		alone := r.alone(p)
		if err := alone.fix(ctx, alone.Files); err != nil {
			return err
		}
	}
	return nil
}

func (r Request) fix(ctx context.Context, patterns []string) error {
	_, stderr, err := r.vet(ctx, "-fix", patterns)
	if said := joined(string(stderr)); err == nil && said != "" {
		err = errors.New(said)
	}
	return err
}

// vet runs go vet. The error is that it could not be run; what it could not read, the standard error says.
func (r Request) vet(ctx context.Context, flag string, patterns []string) (stdout, stderr []byte, err error) {
	// With trimmed paths, findings of the same package in another folder would be replayed, with that folder's files.
	args := []string{"vet", "-trimpath=false", "-vettool=" + r.Tool, flag}
	for _, id := range r.Skip {
		if rule, ok := vet.Find(id); ok && rule.In.Has(vet.Go) {
			args = append(args, "-"+id+"=false")
		}
	}
	if len(r.Files) > 0 {
		args = append(args, "-files="+strings.Join(r.Files, ","))
	}
	return r.run(ctx, append(args, patterns...))
}

// run runs the go command. That it has something to say, and so ends with another status than 0, is no error.
func (r Request) run(ctx context.Context, args []string) (stdout, stderr []byte, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && said.Len() > 0 {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("go %s: %w", args[0], err)
	}
	return out.Bytes(), said.Bytes(), err
}
