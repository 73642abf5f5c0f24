package pyenv

import (
	"encoding/csv"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// maxMetadata is how much is read of a METADATA file: its head; behind it is the project's description.
const maxMetadata = 256 << 10

// maxDamage is how many damaged files of a package are listed.
const maxDamage = 8

var separators = regexp.MustCompile(`[-_.]+`)

// normal is a distribution's name as indexes compare it.
func normal(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// matters says whether a package is one of those that training on a GPU depends on.
func matters(name string) bool {
	for _, p := range []string{"torch", "pytorch", "libtorch", "nvidia-", "cuda-", "cudatoolkit", "cudnn", "nccl", "cpuonly", "triton", "jax", "tensorflow", "tf-nightly", "cupy", "xformers", "flash-attn", "bitsandbytes", "intel-extension-for-"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return name == "python"
}

// packages adds what is installed in a site.
func (s *Search) packages(e *Environment, site Site) {
	for _, name := range s.names(site.Path) {
		if strings.HasPrefix(name, "~") {
			e.Leftovers = appendNew(e.Leftovers, site.Path+"/"+name)
			continue
		}
		stem, dist := strings.CutSuffix(name, ".dist-info")
		if !dist {
			continue
		}
		guess, _, _ := strings.Cut(stem, "-")
		if !matters(normal(guess)) {
			continue
		}
		if p, ok := s.dist(site.Path, site.Path+"/"+name); ok {
			e.Packages = append(e.Packages, p)
		}
	}
}

// dist reads the .dist-info folder of a package.
func (s *Search) dist(site, dir string) (Package, bool) {
	f := s.open(dir + "/METADATA")
	if f == nil {
		return Package{}, false
	}
	defer f.Close()
	p := metadata(io.LimitReader(f, maxMetadata))
	if p.Name == "" {
		return p, false
	}
	p.Site = site
	p.Installer = strings.TrimSpace(string(s.text(dir+"/INSTALLER", 64)))
	var tags []string
	s.lines(dir+"/WHEEL", func(line string) bool {
		if tag, ok := strings.CutPrefix(line, "Tag: "); ok && len(tags) < 4 {
			tags = append(tags, tag)
		}
		return true
	})
	p.Build = strings.Join(tags, " ")
	p.Damaged = s.damage(p.Name, site, dir+"/RECORD")
	return p, true
}

// metadata reads the head of a METADATA file: name, version, and the requirements that matter.
func metadata(r io.Reader) Package {
	var p Package
	scanLines(r, func(line string) bool {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch field {
		case "":
			return false // the description follows
		case "Name":
			p.Name = normal(value)
		case "Version":
			p.Version = value
		case "Requires-Dist":
			if r, ok := ParseRequirement(value); ok && matters(r.Name) && len(p.Requires) < 512 {
				p.Requires = append(p.Requires, r)
			}
		}
		return true
	})
	return p
}

// libraries are the folders whose files are compared with RECORD.
var libraries = regexp.MustCompile(`^(torch/lib|nvidia/[\w.-]+/(lib|bin)|triton/_C)/[^/]+\.(so[.0-9]*|dll|dylib|pyd)$`)

// damage compares the sizes of a package's libraries with those that it was installed with.
func (s *Search) damage(name, site, record string) []Damage {
	if name != "torch" && name != "triton" && !strings.HasPrefix(name, "nvidia-") {
		return nil
	}
	var all []Damage
	s.lines(record, func(line string) bool {
		if !strings.Contains(line, "/lib/") && !strings.Contains(line, "/bin/") && !strings.Contains(line, "/_C/") {
			return true
		}
		path, size, ok := recorded(line)
		if !ok || !libraries.MatchString(path) {
			return true
		}
		have := int64(-1)
		if st := s.stat(site + "/" + path); st != nil {
			have = st.Size()
		}
		if have != size {
			all = append(all, Damage{site + "/" + path, size, have})
		}
		return len(all) < maxDamage
	})
	return all
}

// recorded reads a line of RECORD: path, hash, size.
func recorded(line string) (path string, size int64, ok bool) {
	path, rest, found := strings.Cut(line, ",")
	if strings.HasPrefix(line, `"`) {
		fields, err := csv.NewReader(strings.NewReader(line)).Read()
		if err != nil || len(fields) != 3 {
			return "", 0, false
		}
		path, rest = fields[0], fields[1]+","+fields[2]
	}
	_, bytes, _ := strings.Cut(rest, ",")
	size, err := strconv.ParseInt(bytes, 10, 64)
	return path, size, found && err == nil
}

// condaPackages returns the packages that conda has installed, by the names of its records: name-version-build.json.
func (s *Search) condaPackages(root string) []Package {
	var all []Package
	for _, file := range s.names(root + "/conda-meta") {
		stem, ok := strings.CutSuffix(file, ".json")
		parts := strings.Split(stem, "-")
		if !ok || len(parts) < 3 {
			continue
		}
		n := len(parts)
		p := Package{Name: normal(strings.Join(parts[:n-2], "-")), Version: parts[n-2], Build: parts[n-1], Installer: "conda"}
		if matters(p.Name) {
			all = append(all, p)
		}
	}
	sorting.By(all, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return all
}
