// Addanop follows docs/add-an-op.md literally: in a copy of the repository it makes the edits of the page, in order, and runs
// its commands. What the page says is what is tested. With -together it makes all edits before it runs a command, so that what
// stands on the ops, which is nearly all, is compiled once.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// page is the recipe, from the root of the repository.
const page = "docs/add-an-op.md"

func main() {
	keep := flag.Bool("keep", false, "leave the copy of the repository, and print where it is")
	together := flag.Bool("together", false, "make all edits before the first command")
	flag.Parse()
	if err := run(*keep, *together); err != nil {
		fmt.Fprintln(os.Stderr, "addanop:", err)
		os.Exit(1)
	}
}

func run(keep, together bool) (err error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("%w; run it from the root of the repository", err)
	}
	steps, err := parse(string(text))
	if err != nil {
		return err
	}
	if together {
		slices.SortStableFunc(steps, func(a, b step) int { return min(len(a.command), 1) - min(len(b.command), 1) })
	}
	dir, err := os.MkdirTemp("", "addanop-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println(dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if err := copyTree(dir); err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.follow(dir); err != nil {
			return fmt.Errorf("%s: %w", s.String(), err)
		}
	}
	return nil
}

// step is an edit of a file, or a command.
type step struct {
	line                 int
	file, anchor, insert string
	command              string
}

// String is where the page has it.
func (s *step) String() string { return fmt.Sprintf("%s:%d", page, s.line) }

// parse reads the page: the text of a block that begins with ```go belongs before the line of a file that the paragraph
// above it names, each line of one that begins with ```sh is a command.
func parse(text string) (steps []step, err error) {
	lines := strings.Split(text, "\n")
	var place step
	for i := 0; i < len(lines); i++ {
		if file, anchor, ok := placeOf(lines[i]); ok {
			place = step{line: i + 1, file: file, anchor: anchor}
		}
		kind, ok := strings.CutPrefix(lines[i], "```")
		if !ok {
			continue
		}
		first := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			return nil, fmt.Errorf("%s:%d: the block has no end", page, first)
		}
		block := lines[first:i]
		switch {
		case kind == "sh":
			for j, c := range block {
				steps = append(steps, step{line: first + j + 1, command: c})
			}
		case kind == "go" && place.file != "":
			place.insert = strings.Join(block, "\n") + "\n"
			steps = append(steps, place)
			place = step{}
		default:
			return nil, fmt.Errorf("%s:%d: no line above says where the block belongs", page, first)
		}
	}
	return steps, nil
}

// placeOf reads "In `file`, before `beginning of a line`:".
func placeOf(line string) (file, anchor string, ok bool) {
	words := strings.Split(line, "`")
	if len(words) != 5 || words[0] != "In " || words[2] != ", before " || words[4] != ":" {
		return "", "", false
	}
	return words[1], words[3], true
}

// copyTree copies what git has or would add.
func copyTree(dir string) error {
	list, err := exec.Command("git", "ls-files", "-co", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.Lines(string(list)) {
		name = strings.TrimSuffix(name, "\n")
		b, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		to := filepath.Join(dir, name)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o777)); err == nil {
			err = os.WriteFile(to, b, 0o666)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *step) follow(dir string) error {
	if s.command == "" {
		fmt.Printf("%s: %s\n", s, s.file)
		path := filepath.Join(dir, s.file)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		edited, err := s.edit(string(text))
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(edited), 0o666)
	}
	if s.compiles() {
		if _, err := exec.LookPath("clang-19"); err != nil {
			fmt.Printf("%s: no clang-19 here, so not: %s\n", s, s.command)
			return nil
		}
	}
	fmt.Printf("%s: %s\n", s, s.command)
	env, words := os.Environ(), strings.Fields(s.command)
	for strings.Contains(words[0], "=") { // an assignment, as a shell takes it
		env, words = append(env, words[0]), words[1:]
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", s.command, err)
	}
	return nil
}

// compiles reports a command that needs the kernels' compiler: it makes PTX, or demands that of every source.
func (s *step) compiles() bool { return strings.Contains(s.command, "internal/cuda/kernels") }

// edit inserts the text before the one line that begins with the anchor.
func (s *step) edit(text string) (string, error) {
	at := strings.Index("\n"+text, "\n"+s.anchor)
	switch {
	case at < 0:
		return "", fmt.Errorf("no line of %s begins with %q", s.file, s.anchor)
	case strings.Contains(text[at+len(s.anchor):], "\n"+s.anchor):
		return "", fmt.Errorf("two lines of %s begin with %q", s.file, s.anchor)
	}
	return text[:at] + s.insert + text[at:], nil
}
