package pyenv

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// environment looks into the environment of a settled candidate.
func (s *Search) environment(c candidate) *Environment {
	e := &Environment{Root: c.root, Kind: Base, By: []string{c.by}, Interpreter: c.interpreter}
	config := map[string]string{}
	switch {
	case s.isFile(c.root + "/pyvenv.cfg"):
		e.Kind, config = Venv, s.values(c.root+"/pyvenv.cfg")
	case s.isDir(c.root + "/conda-meta"):
		e.Kind = Conda
	}
	base := ""
	if home := config["home"]; home != "" && !s.isDir(home) {
		e.BaseGone = home
	} else if home != "" {
		base = s.baseOf(home)
	}
	conda := s.condaPackages(c.root)
	e.Python = s.version(e, config, base, conda)
	if e.Interpreter != "" {
		e.Machine = machine(s.text(e.Interpreter, 4096))
	}
	e.Sites = s.sites(e, config, base)
	e.Packages = conda
	for _, site := range e.Sites {
		s.packages(e, site)
	}
	e.settleRequirements(s.OS)
	e.Frameworks = s.frameworks(e)
	return e
}

// baseOf returns the folder of the installation whose interpreters lie in home.
func (s *Search) baseOf(home string) string {
	if s.OS == "windows" {
		return s.resolve(home)
	}
	return filepath.Dir(s.resolve(home))
}

var (
	patchlevel = regexp.MustCompile(`(?m)^#define\s+PY_VERSION\s+"([0-9][^"]*)"`)
	versioned  = regexp.MustCompile(`^python(3\.\d+)t?(\.exe)?$`)
	dotted     = regexp.MustCompile(`^\d+\.\d+(\.\d+)?[0-9a-z.+]*$`)
	windowsDLL = regexp.MustCompile(`(?i)^python3(\d+)\.dll$`)
)

// version returns the version of Python: of the venv's configuration, conda's package, the header that is installed with it, or
// of names.
func (s *Search) version(e *Environment, config map[string]string, base string, conda []Package) string {
	for _, name := range []string{"version_info", "version"} {
		if v := config[name]; dotted.MatchString(v) {
			return number(v)
		}
	}
	for _, p := range conda {
		if p.Name == "python" {
			return p.Version
		}
	}
	minor := s.minor(e)
	for _, root := range []string{e.Root, base} {
		for _, header := range []string{"/include/python" + minor + "/patchlevel.h", "/include/python" + minor + "m/patchlevel.h", "/include/patchlevel.h"} {
			if root == "" {
				continue
			}
			if m := patchlevel.FindSubmatch(s.text(root+header, 64<<10)); m != nil {
				return string(m[1])
			}
		}
	}
	return minor
}

// number cuts "3.11.7.final.0" to 3.11.7.
func number(v string) string {
	parts := strings.Split(v, ".")
	return strings.Join(parts[:min(3, len(parts))], ".")
}

// minor returns "3.11" by the name of the interpreter, its library, or the folder of packages.
func (s *Search) minor(e *Environment) string {
	if e.Interpreter != "" {
		if m := versioned.FindStringSubmatch(filepath.Base(s.resolve(e.Interpreter))); m != nil {
			return m[1]
		}
	}
	for _, name := range s.names(e.Root) {
		if m := windowsDLL.FindStringSubmatch(name); m != nil && s.OS == "windows" {
			return "3." + m[1]
		}
	}
	for _, name := range s.names(e.Root + "/lib") {
		if m := versioned.FindStringSubmatch(name); m != nil && s.isDir(e.Root+"/lib/"+name) {
			return m[1]
		}
	}
	return ""
}

// sites returns the folders that import looks in, in its order: those of PYTHONPATH, then as Python's module site adds them.
func (s *Search) sites(e *Environment, config map[string]string, base string) []Site {
	var all []Site
	add := func(by string, paths ...string) {
		for _, p := range paths {
			p = filepath.Clean(p)
			known := slices.ContainsFunc(all, func(have Site) bool { return have.Path == p })
			if known || !s.isDir(p) || len(all) == 64 {
				continue
			}
			all = append(all, Site{p, by})
		}
	}
	add("PYTHONPATH", s.list("PYTHONPATH")...)
	minor := minorOf(e.Python)
	shared := e.Kind != Venv || strings.EqualFold(config["include-system-site-packages"], "true")
	own := func() {
		for _, dir := range s.siteDirs(e.Root, minor) {
			add("site-packages", dir)
			add(".pth file", s.pth(dir)...)
		}
	}
	if e.Kind == Venv {
		own()
	}
	if shared && s.Getenv("PYTHONNOUSERSITE") == "" {
		user := s.userSite(minor)
		add("user site", user)
		add(".pth file", s.pth(user)...)
	}
	if e.Kind != Venv {
		own()
	} else if shared && base != "" {
		for _, dir := range s.siteDirs(base, minor) {
			add("site-packages", dir)
		}
	}
	return all
}

// minorOf cuts 3.11.7 to 3.11.
func minorOf(version string) string {
	parts := strings.Split(version, ".")
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// siteDirs returns the folders of packages of an installation.
func (s *Search) siteDirs(root, minor string) []string {
	if s.OS == "windows" {
		return []string{root + "/Lib/site-packages"}
	}
	dirs := []string{root + "/lib/python" + minor + "/site-packages", root + "/lib/python" + minor + "t/site-packages", root + "/lib64/python" + minor + "/site-packages"}
	if root == "/usr" { // Debian keeps what pip installs apart from its own packages
		dirs = append(dirs, "/usr/local/lib/python"+minor+"/dist-packages", "/usr/lib/python3/dist-packages", "/usr/lib/python"+minor+"/dist-packages")
	}
	for i, dir := range dirs {
		if minor == "" {
			dirs[i] = root + "/no version"
		} else if s.isDir(dir) {
			dirs[i] = s.resolve(dir) // lib64 may be lib
		}
	}
	return dirs
}

// userSite returns the folder of packages that `pip install --user` fills.
func (s *Search) userSite(minor string) string {
	home := s.Getenv("PYTHONUSERBASE")
	switch {
	case minor == "" || home == "" && s.Home == "":
		return ""
	case s.OS == "windows" && home == "":
		return s.Getenv("APPDATA") + "/Python/Python" + strings.Replace(minor, ".", "", 1) + "/site-packages"
	case home == "" && s.OS == "darwin" && s.isDir(s.Home+"/Library/Python/"+minor):
		return s.Home + "/Library/Python/" + minor + "/lib/python/site-packages"
	case home == "":
		home = s.Home + "/.local"
	}
	return home + "/lib/python" + minor + "/site-packages"
}

// pth returns the folders that the .pth files of a site name. Their lines of code are not followed.
func (s *Search) pth(site string) []string {
	var dirs []string
	if site == "" {
		return nil
	}
	for _, name := range s.names(site) {
		if !strings.HasSuffix(name, ".pth") || len(dirs) > 32 {
			continue
		}
		s.lines(site+"/"+name, func(line string) bool {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "import\t") || len(line) > 4096 {
				return true
			}
			if !filepath.IsAbs(line) {
				line = filepath.Join(site, line)
			}
			dirs = append(dirs, line)
			return len(dirs) < 32
		})
	}
	return dirs
}
