package pyenv

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// maxEnvironments is how many environments are looked into; a Note says that there are more.
const maxEnvironments = 48

// Search is where to look for environments.
type Search struct {
	OS          string              // as in GOOS
	Root        string              // of the file system: a prefix of all paths, which paths that are found do not have
	Home        string              // the user's folder
	Dir         string              // the working directory
	Getenv      func(string) string // environment variables
	Interpreter string              // of a process that is looked at; may be empty
}

// Here is the search of this machine by this process.
func Here() *Search {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	return &Search{OS: runtime.GOOS, Home: home, Dir: dir, Getenv: os.Getenv}
}

// candidate is a folder that may be an environment, or an interpreter of one.
type candidate struct {
	root, interpreter string
	by                string
}

// Find looks for environments and into each, those first that a person at this terminal would use. A context that ends
// leaves out those that are not looked into yet, and a Note says so.
func (s *Search) Find(ctx context.Context) *Found {
	f := &Found{OS: s.OS, Loader: s.loader(), Local: s.copies([]Site{{s.Dir, "working directory"}}, "torch"), Variables: s.variables()}
	known := map[string]*Environment{}
	queue := s.candidates()
	for i := 0; i < len(queue); i++ {
		c := s.settle(queue[i])
		if c.root == "" {
			continue
		}
		if e := known[c.root]; e != nil {
			e.By = appendNew(e.By, c.by)
			continue
		}
		if ctx.Err() != nil || len(f.Environments) == maxEnvironments {
			f.Notes = append(f.Notes, fmt.Sprintf("looked into %d environments; %s and what else there is were left out", len(f.Environments), c.root))
			break
		}
		e := s.environment(c)
		known[c.root] = e
		f.Environments = append(f.Environments, e)
		queue = append(queue, s.kernels(c.root+"/share/jupyter", e)...)
	}
	return f
}

func appendNew(list []string, v string) []string {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// candidates returns where environments may be, by precedence.
func (s *Search) candidates() []candidate {
	var all []candidate
	if s.Interpreter != "" {
		all = append(all, candidate{interpreter: filepath.Clean(s.Interpreter), by: ByProcess})
	}
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if v := s.Getenv(name); v != "" {
			all = append(all, candidate{root: filepath.Clean(v), by: name})
		}
	}
	for _, name := range []string{".venv", "venv", "env", ".pixi/envs/default"} {
		if dir := filepath.Join(s.Dir, name); s.Dir != "" && s.isEnvironment(dir) {
			all = append(all, candidate{root: dir, by: "./" + name})
		}
	}
	all = append(all, s.inPath()...)
	for _, dir := range s.jupyter() {
		all = append(all, s.kernels(dir, nil)...)
	}
	for _, p := range s.places() {
		all = append(all, s.children(p)...)
	}
	return all
}

// isEnvironment says whether a folder is a venv or an environment of conda.
func (s *Search) isEnvironment(dir string) bool {
	return s.isFile(dir+"/pyvenv.cfg") || s.isDir(dir+"/conda-meta")
}

// interpreters are the names that the shell is given.
func (s *Search) interpreters() []string {
	if s.OS == "windows" {
		return []string{"python.exe", "python3.exe"}
	}
	return []string{"python3", "python"}
}

// inPath returns the interpreters in PATH: of each name the first, which a command line runs, and those that it hides.
func (s *Search) inPath() []candidate {
	var all []candidate
	had := map[string]bool{}
	for _, dir := range s.list("PATH") {
		for _, name := range s.interpreters() {
			p := filepath.Join(dir, name)
			if !s.isFile(p) {
				continue
			}
			by := ByPath
			if had[name] {
				by = "PATH, hidden"
			}
			had[name] = true
			all = append(all, candidate{interpreter: p, by: by})
		}
	}
	return all
}

// list splits a variable that is a list of folders.
func (s *Search) list(name string) []string {
	sep := ":"
	if s.OS == "windows" {
		sep = ";"
	}
	var dirs []string
	for d := range strings.SplitSeq(s.Getenv(name), sep) {
		if d = strings.Trim(d, `"`); d != "" {
			dirs = append(dirs, filepath.Clean(d))
		}
	}
	return dirs
}

// jupyter returns the folders of Jupyter's data, by precedence.
func (s *Search) jupyter() []string {
	dirs := s.list("JUPYTER_PATH")
	if d := s.Getenv("JUPYTER_DATA_DIR"); d != "" {
		dirs = append(dirs, d)
	}
	switch s.OS {
	case "windows":
		return append(dirs, s.Getenv("APPDATA")+"/jupyter", cmp.Or(s.Getenv("PROGRAMDATA"), "C:/ProgramData")+"/jupyter")
	case "darwin":
		dirs = append(dirs, s.Home+"/Library/Jupyter")
	default:
		dirs = append(dirs, cmp.Or(s.Getenv("XDG_DATA_HOME"), s.Home+"/.local/share")+"/jupyter")
	}
	return append(dirs, "/usr/local/share/jupyter", "/usr/share/jupyter")
}

// kernels returns the interpreters of the kernels in a folder of Jupyter's data. A kernel that names none but "python" uses that
// of the environment it lies in.
func (s *Search) kernels(dir string, in *Environment) []candidate {
	var all []candidate
	for _, name := range s.names(dir + "/kernels") {
		var spec struct {
			Argv []string `json:"argv"`
		}
		text := s.text(dir+"/kernels/"+name+"/kernel.json", 64<<10)
		if json.Unmarshal(text, &spec) != nil || len(spec.Argv) == 0 {
			continue
		}
		by := "kernel " + name
		switch p := started(spec.Argv); {
		case p == "": // another language, or a launcher that names no interpreter
		case filepath.IsAbs(p) || s.OS == "windows" && len(p) > 2 && p[1] == ':':
			all = append(all, candidate{interpreter: filepath.Clean(p), by: by})
		case in != nil:
			in.By = appendNew(in.By, by)
		}
	}
	return all
}

// started is the interpreter in the command of a kernel, also behind env, a shell or conda run; empty if it has none.
func started(argv []string) string {
	for _, word := range argv {
		name := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
		if interpreter.MatchString(name) {
			return word
		}
	}
	return ""
}

var interpreter = regexp.MustCompile(`^(python|pypy)[0-9.]*t?(\.exe)?$`)

// place is a folder whose folders are environments, or one itself.
type place struct {
	dir string
	by  string
	one bool
}

// places returns where tools keep their environments.
func (s *Search) places() []place {
	env := func(name, otherwise string) string { return cmp.Or(s.Getenv(name), otherwise) }
	data := env("XDG_DATA_HOME", s.Home+"/.local/share")
	cache := s.Home + "/.cache"
	condas := []string{s.Home + "/miniconda3", s.Home + "/anaconda3", s.Home + "/miniforge3", s.Home + "/mambaforge", s.Home + "/micromamba"}
	var all []place
	switch s.OS {
	case "windows":
		local := env("LOCALAPPDATA", s.Home+"/AppData/Local")
		program := env("PROGRAMDATA", "C:/ProgramData")
		data, cache = env("APPDATA", s.Home+"/AppData/Roaming"), local
		condas = append(condas, program+"/miniconda3", program+"/anaconda3", program+"/miniforge3", local+"/miniconda3", local+"/anaconda3")
		all = append(all, place{dir: local + "/Programs/Python", by: "Python installation"}, place{dir: env("PROGRAMFILES", "C:/Program Files"), by: "Python installation"},
			place{dir: env("SYSTEMDRIVE", "C:") + "/", by: "Python installation"}, place{dir: s.Home + "/.pyenv/pyenv-win/versions", by: "pyenv"})
	case "darwin":
		cache = s.Home + "/Library/Caches"
		condas = append(condas, "/opt/miniconda3", "/opt/anaconda3", "/opt/homebrew/Caskroom/miniconda/base", "/opt/homebrew/Caskroom/miniforge/base")
		all = append(all, place{dir: "/Library/Frameworks/Python.framework/Versions", by: "Python framework"})
	default:
		condas = append(condas, "/opt/conda", "/opt/miniconda3", "/opt/anaconda3")
	}
	all = append(all, place{dir: env("PYENV_ROOT", s.Home+"/.pyenv") + "/versions", by: "pyenv"},
		place{dir: env("UV_PYTHON_INSTALL_DIR", data+"/uv/python"), by: "uv"}, place{dir: env("WORKON_HOME", s.Home+"/.virtualenvs"), by: "virtualenvwrapper"},
		place{dir: env("POETRY_VIRTUALENVS_PATH", env("POETRY_CACHE_DIR", cache+"/pypoetry")+"/virtualenvs"), by: "poetry"}, place{dir: s.Home + "/.conda/envs", by: "conda"},
		place{dir: env("PIPX_HOME", data+"/pipx") + "/venvs", by: "pipx"}, place{dir: s.Home + "/.local/pipx/venvs", by: "pipx"},
		place{dir: env("UV_TOOL_DIR", data+"/uv/tools"), by: "uv"})
	for _, c := range append(condas, s.Getenv("MAMBA_ROOT_PREFIX")) {
		if c != "" {
			all = append(all, place{dir: c, by: "conda", one: true}, place{dir: c + "/envs", by: "conda"})
		}
	}
	s.lines(s.Home+"/.conda/environments.txt", func(line string) bool {
		all = append(all, place{dir: strings.TrimSpace(line), by: "conda", one: true})
		return len(all) < 1000
	})
	return all
}

// children returns the environments of a place.
func (s *Search) children(p place) []candidate {
	if p.one {
		if !s.isEnvironment(p.dir) {
			return nil
		}
		return []candidate{{root: p.dir, by: p.by}}
	}
	var all []candidate
	for _, name := range s.names(p.dir) {
		dir := filepath.Join(p.dir, name)
		if s.isEnvironment(dir) || s.pythonIn(dir) != "" {
			all = append(all, candidate{root: dir, by: p.by})
		}
	}
	return all
}

// pythonIn returns the interpreter of an environment's folder; empty if it has none.
func (s *Search) pythonIn(root string) string {
	dirs := []string{"bin"}
	if s.OS == "windows" {
		dirs = []string{"Scripts", "."}
	}
	for _, dir := range dirs {
		for _, name := range s.interpreters() {
			if p := filepath.Join(root, dir, name); s.isFile(p) {
				return p
			}
		}
	}
	return ""
}

// settle gives a candidate its folder, as it is named where nothing is a symbolic link, and its interpreter. A candidate that
// is none has no folder: a script that starts something else, the stub of the Microsoft Store.
func (s *Search) settle(c candidate) candidate {
	if c.interpreter == "" {
		if !s.isDir(c.root) {
			return candidate{}
		}
		c.interpreter = s.pythonIn(c.root)
		c.root = s.resolve(c.root)
		return c
	}
	if filepath.Base(filepath.Dir(c.interpreter)) == "shims" {
		return s.shim(c)
	}
	if st := s.stat(c.interpreter); st == nil || st.Size() == 0 {
		return candidate{}
	}
	c.root = s.resolve(s.prefix(c.interpreter))
	return c
}

// prefix returns the folder of an interpreter's environment: that beside it if that is one, else that of the program that
// symbolic links lead to.
func (s *Search) prefix(interpreter string) string {
	up := filepath.Dir(filepath.Dir(interpreter))
	if s.isEnvironment(up) {
		return up
	}
	target := s.resolve(interpreter)
	dir := filepath.Dir(target)
	if base := strings.ToLower(filepath.Base(dir)); s.OS == "windows" && base != "scripts" {
		return dir
	}
	return filepath.Dir(dir)
}

// shim settles a script of pyenv, which starts the interpreter that a file or a variable names.
func (s *Search) shim(c candidate) candidate {
	root := filepath.Dir(filepath.Dir(c.interpreter))
	version := s.Getenv("PYENV_VERSION")
	for _, file := range []string{filepath.Join(s.Dir, ".python-version"), root + "/version"} {
		if version == "" {
			version, _, _ = strings.Cut(strings.TrimSpace(string(s.text(file, 4096))), "\n")
		}
	}
	version, _, _ = strings.Cut(version, ":")
	dir := filepath.Join(root, "versions", version)
	if version == "" || !s.isDir(dir) {
		return candidate{}
	}
	return candidate{root: s.resolve(dir), interpreter: s.pythonIn(dir), by: c.by}
}

// variables returns those that change what is imported and loaded.
func (s *Search) variables() []Variable {
	var all []Variable
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "LD_LIBRARY_PATH", "LD_PRELOAD", "CUDA_HOME", "CUDA_PATH"} {
		if v := s.Getenv(name); v != "" {
			all = append(all, Variable{name, v})
		}
	}
	return all
}
