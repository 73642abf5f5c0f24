package pyenv

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Requirement is what a package asks for of another.
type Requirement struct {
	Name   string   `json:"name" bundle:"package"` // normalized
	Extras []string `json:"extras,omitempty"`
	Spec   string   `json:"spec,omitempty" bundle:"specifier"` // ==2.15.0, or <14,>=13.0.3; empty: any version
	Marker string   `json:"marker,omitempty"`
}

var requirement = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?\s*\(?([^;()]*)\)?\s*(?:;(.*))?$`)

// ParseRequirement reads a value of Requires-Dist. One by address (NAME @ URL) asks for any version.
func ParseRequirement(text string) (Requirement, bool) {
	m := requirement.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Requirement{}, false
	}
	r := Requirement{Name: normal(m[1]), Spec: strings.ReplaceAll(m[3], " ", ""), Marker: strings.TrimSpace(m[4])}
	if strings.HasPrefix(r.Spec, "@") {
		r.Spec = ""
	}
	for x := range strings.SplitSeq(m[2], ",") {
		if x = strings.TrimSpace(x); x != "" {
			r.Extras = append(r.Extras, normal(x))
		}
	}
	return r, true
}

// settleRequirements leaves those requirements that apply to the environment: of extras that some package asks for, and
// whose markers hold here.
func (e *Environment) settleRequirements(os string) {
	extras := map[string][]string{}
	for _, p := range e.Packages {
		for _, r := range p.Requires {
			if e.holds(r, os, nil) {
				extras[r.Name] = append(extras[r.Name], r.Extras...)
			}
		}
	}
	for i := range e.Packages {
		p := &e.Packages[i]
		var apply []Requirement
		for _, r := range p.Requires {
			if !e.holds(r, os, extras[p.Name]) {
				continue
			}
			r.Marker = ""
			if !slices.ContainsFunc(apply, func(a Requirement) bool { return a.Name == r.Name && a.Spec == r.Spec }) {
				apply = append(apply, r)
			}
		}
		p.Requires = apply
	}
}

// holds evaluates a requirement's marker, with each extra in turn or without one.
func (e *Environment) holds(r Requirement, os string, extras []string) bool {
	if r.Marker == "" {
		return true
	}
	for _, x := range append([]string{""}, extras...) {
		if marker(r.Marker, e.variables(os, x)) {
			return true
		}
	}
	return false
}

// variables are those of markers.
func (e *Environment) variables(os, extra string) map[string]string {
	machine := e.Machine
	switch {
	case os == "windows" && machine == "x86_64":
		machine = "AMD64"
	case os == "linux" && machine == "arm64":
		machine = "aarch64"
	}
	return map[string]string{
		"sys_platform":                   map[string]string{"windows": "win32"}[os] + map[string]string{"linux": "linux", "darwin": "darwin"}[os],
		"platform_system":                map[string]string{"windows": "Windows", "linux": "Linux", "darwin": "Darwin"}[os],
		"platform_machine":               machine,
		"os_name":                        map[string]string{"windows": "nt", "linux": "posix", "darwin": "posix"}[os],
		"python_version":                 minorOf(e.Python),
		"python_full_version":            e.Python,
		"platform_python_implementation": "CPython",
		"implementation_name":            "cpython",
		"extra":                          extra,
	}
}

// Unmet is a requirement that what is installed does not meet.
type Unmet struct {
	Of   string      // the package that requires
	Need Requirement // what it asks for
	Have string      // the version that import finds; empty: it is not installed
}

// Unmet returns the requirements of packages that matter and that nothing installed meets.
func (e *Environment) Unmet() []Unmet {
	var all []Unmet
	for _, p := range e.Packages {
		if e.Package(p.Name).Site != p.Site {
			continue // another copy comes first
		}
		for _, r := range p.Requires {
			have := e.Package(r.Name)
			switch {
			case have == nil:
				all = append(all, Unmet{p.Name, r, ""})
			case !Meets(e.versionOf(have), r.Spec):
				all = append(all, Unmet{p.Name, r, e.versionOf(have)})
			}
		}
	}
	return all
}

// versionOf is the version of a package that runs: what a framework says of itself counts, not what its distribution says.
func (e *Environment) versionOf(p *Package) string {
	if f := e.Framework(p.Name); f != nil && f.Version != "" {
		return f.Version
	}
	return p.Version
}

var (
	clause  = regexp.MustCompile(`^(===|==|!=|<=|>=|~=|<|>)(.+)$`)
	release = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(.*)$`)
)

// Meets says whether a version meets a specifier (PEP 440, without epochs). What cannot be read counts as met.
func Meets(version, spec string) bool {
	for c := range strings.SplitSeq(spec, ",") {
		if m := clause.FindStringSubmatch(strings.TrimSpace(c)); m != nil && !meets(version, m[1], strings.TrimSpace(m[2])) {
			return false
		}
	}
	return true
}

func meets(version, op, want string) bool {
	if _, local, asked := strings.Cut(want, "+"); asked && op == "==" {
		_, have, _ := strings.Cut(version, "+") // a local version counts only where it is asked for
		return CompareVersions(version, want) == 0 && have == local
	}
	stem, wild := strings.CutSuffix(want, ".*")
	order := CompareVersions(version, stem)
	same := order == 0
	if wild {
		same = hasRelease(version, stem)
	}
	switch op {
	case "==":
		return same
	case "===":
		return version == want
	case "!=":
		return !same
	case "<": // not one that leads to the version itself
		return order < 0 && !(hasRelease(version, numbers(stem)) && stageOf(version) < 0 && stageOf(stem) == 0)
	case "<=":
		return order <= 0
	case ">": // not one that follows the version itself
		return order > 0 && !(hasRelease(version, numbers(stem)) && stageOf(version) > 0 && stageOf(stem) == 0)
	case ">=":
		return order >= 0
	}
	parts := strings.Split(stem, ".") // ~=: no older, and the same but for the last number
	return order >= 0 && hasRelease(version, strings.Join(parts[:len(parts)-1], "."))
}

// numbers cuts a version to its numbers.
func numbers(v string) string {
	if m := release.FindStringSubmatch(v); m != nil {
		return m[1]
	}
	return v
}

// stageOf is below 0 of what leads to a release, above 0 of what follows one.
func stageOf(v string) int {
	_, rest := split(v)
	return stage(rest)
}

// hasRelease says whether the numbers of a version begin with those of stem.
func hasRelease(version, stem string) bool {
	v, _ := split(version)
	w, _ := split(stem)
	for len(v) < len(w) {
		v = append(v, 0)
	}
	return slices.Equal(v[:len(w)], w)
}

// CompareVersions orders two versions: 2.1 < 2.10.0.dev1 < 2.10.0a1 < 2.10.0rc1 < 2.10 = 2.10.0 < 2.10.0.post1.
// Local versions (+cu128) do not count.
func CompareVersions(a, b string) int {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	x, xs := split(a)
	y, ys := split(b)
	for len(x) < len(y) {
		x = append(x, 0)
	}
	for len(y) < len(x) {
		y = append(y, 0)
	}
	return cmp.Or(slices.Compare(x, y), cmp.Compare(stage(xs), stage(ys)), naturally(xs, ys))
}

// split cuts a version into its numbers and what follows.
func split(v string) (numbers []int, rest string) {
	m := release.FindStringSubmatch(v)
	if m == nil {
		return nil, v
	}
	for part := range strings.SplitSeq(m[1], ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 1 << 30
		}
		numbers = append(numbers, n)
	}
	return numbers, m[2]
}

// stage orders what follows the numbers.
func stage(rest string) int {
	rest = strings.TrimLeft(rest, ".-_")
	for i, s := range []string{"dev", "a", "b", "rc", "c", "post"} {
		if strings.HasPrefix(rest, s) {
			return []int{-4, -3, -2, -1, -1, 1}[i]
		}
	}
	return 0
}

// naturally compares texts with numbers in them: dev9 < dev10.
func naturally(a, b string) int {
	digits := func(s string) int {
		n, _ := strconv.Atoi(strings.TrimFunc(s, func(r rune) bool { return r < '0' || r > '9' }))
		return n
	}
	return cmp.Or(cmp.Compare(digits(a), digits(b)), 0)
}
