package exercise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/sources"
)

const (
	module = "github.com/warpline-ml/warpline"
	mark   = "exercise.json" // of a folder: which exercise it is
)

// Start makes a folder for an exercise. One in Go needs Warpline's module: source is a folder with its sources; without, version
// is one that was published, as v1.2.3. The folder must not be there.
func (e *Exercise) Start(dir, source, version string) error {
	list, err := e.begin(source, version)
	if err != nil {
		return err
	}
	err = durable.WriteDir(dir, func(temp string) error {
		for _, f := range list {
			if err := os.WriteFile(filepath.Join(temp, f.Name), []byte(f.Text), 0o666); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, fs.ErrExist) {
		return advice.Explain(err, "give another name; what is in a folder is never written over")
	}
	return advice.Explain(err, "give another name, in a folder that can be written")
}

// begin are the files of a folder to begin with.
func (e *Exercise) begin(source, version string) (list []File, err error) {
	text, err := json.Marshal(map[string]string{"name": e.Name})
	if err != nil {
		return nil, err
	}
	list = []File{{mark, string(text) + "\n"}, {"README.md", e.readme(source)}}
	if e.Puzzle {
		own, err := e.puzzle.files("start")
		return append(list, own...), err
	}
	mod, err := Modules("exercise", source, version)
	if err != nil {
		return nil, err
	}
	start, err := e.folder("start")
	if err != nil {
		return nil, err
	}
	tests, err := e.folder("")
	return append(append(append(list, mod...), start...), tests...), err
}

func (e *Exercise) readme(source string) string {
	how := "Change exercise.go until `go test` passes; `warpline learn check .` says the same with a hint.\n"
	if e.Puzzle {
		source = ""
		how = "Change kernel.ptx until `warpline learn check .` passes: it runs the kernel on a simulated GPU under all checks. Those who would rather write\n" +
			"CUDA C++ change kernel.cu, and make PTX of it by `nvcc -ptx -arch=sm_75 kernel.cu` or by clang:\n\n    " + clangLine + "\n"
	}
	if source != "" {
		how += "\n" + From(source) + "\n"
	}
	return "# " + e.Title + "\n\n" + e.About + "\n\n" + how + "\n`warpline learn hint " + e.Name + " 1` helps a little, `warpline learn solution " + e.Name + "` shows one that passes.\n"
}

// From says for a README where go.mod takes Warpline from.
func From(source string) string {
	if place, err := sources.Place(); err == nil && source == place {
		return "go.mod takes Warpline's sources from " + source + ", a copy that was in the warpline program: nothing of it is fetched.\n" +
			"Should it be gone, `warpline learn start` or `warpline learn check` of an exercise in Go writes it anew. On another machine it lies elsewhere: take\n" +
			"go.mod from a folder that `warpline learn start` makes there."
	}
	return "go.mod takes Warpline's sources from " + source + "."
}

// Source is where an exercise has Warpline's sources from if nobody says where: the copy that this program has, which fits it, else the
// checkout that the working directory lies in, or "" for a version that the go command can fetch.
func Source(version string) (string, error) {
	switch {
	case sources.Have():
		return sources.Folder()
	case Published(version):
		return "", nil
	}
	return Above(), nil
}

// Modules are go.mod, and go.sum where it needs one, of a module called name, by which the go command finds Warpline and what it needs.
func Modules(name, source, version string) ([]File, error) {
	head := "module " + name + "\n\ngo 1.26.0\n\nrequire " + module + " "
	if source == "" {
		if !Published(version) {
			return nil, advice.Failf("take a release, which has a copy of them, or give --source DIR, a folder with Warpline's sources, as git clone makes one; kernel puzzles need none",
				"an exercise in Go needs Warpline's sources, and this program has no copy and is no published version that the go command could fetch them by: %s", version)
		}
		return []File{{"go.mod", head + version + "\n"}}, nil
	}
	source, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil || !isWarpline(mod) {
		return nil, advice.Failf("give the folder that has Warpline's go.mod", "--source %s: no module %s is there", source, module)
	}
	sum, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return nil, advice.Explain(err, "give the folder that has Warpline's go.sum")
	}
	_, needs, _ := strings.Cut(string(mod), "\nrequire (") // the same versions, so that nothing is fetched anew
	text := fmt.Sprintf("%sv0.0.0\n\nreplace %s => %q\n\nrequire (%s", head, module, source, needs)
	return []File{{"go.mod", text}, {"go.sum", string(sum)}}, nil
}

// Published reports whether the go command can fetch a version: not the time and hash of a commit, by which a build in a checkout is
// called, wherever that commit is.
func Published(version string) bool {
	return strings.HasPrefix(version, "v") && !commit.MatchString(version)
}

var commit = regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}`) // https://go.dev/ref/mod#pseudo-versions

func isWarpline(mod []byte) bool { return strings.HasPrefix(string(mod), "module "+module+"\n") }

// Above is the folder with Warpline's sources that the working directory lies in, or "".
func Above() string {
	dir, err := os.Getwd()
	for err == nil {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && isWarpline(mod) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return ""
}

// Of is the exercise that a folder is for.
func Of(dir string) (*Exercise, error) {
	f, err := os.Open(filepath.Join(dir, mark))
	if err != nil {
		return nil, advice.Explain(err, "give a folder that warpline learn start has made")
	}
	defer f.Close()
	var named struct{ Name string }
	if err := json.NewDecoder(io.LimitReader(f, 1<<10)).Decode(&named); err != nil {
		return nil, advice.Explain(fmt.Errorf("%s: %w", f.Name(), err), `it says {"name":"NAME"}`)
	}
	return Find(named.Name)
}
