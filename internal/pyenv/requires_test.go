package pyenv

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"
)

func golden(t *testing.T, name, sep string) (rows [][]string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		rows = append(rows, strings.Split(strings.TrimSpace(line), sep))
	}
	if len(rows) < 100 {
		t.Fatalf("%s has %d rows", name, len(rows))
	}
	return rows
}

func TestVersionsAsPackaging(t *testing.T) {
	for _, r := range golden(t, "versions.txt", " ") {
		switch r[0] {
		case "order":
			if want, _ := strconv.Atoi(r[3]); cmp.Compare(CompareVersions(r[1], r[2]), 0) != want {
				t.Errorf("%s against %s: %d, not %d", r[1], r[2], CompareVersions(r[1], r[2]), want)
			}
		case "meets":
			if got := Meets(r[1], strings.TrimPrefix(r[2], "-")); got != (r[3] == "True") {
				t.Errorf("%s meets %s: %v", r[1], r[2], got)
			}
		}
	}
}

func TestMarkersAsPackaging(t *testing.T) {
	for _, r := range golden(t, "markers.txt", "\t") {
		host := strings.Split(r[0], "/")
		e := &Environment{Machine: host[1], Python: host[2]}
		if got := marker(r[3], e.variables(host[0], strings.TrimPrefix(r[1], "-"))); got != (r[2] == "True") {
			t.Errorf("%s, extra %s: %s is %v", r[0], r[1], r[3], got)
		}
	}
	for _, bad := range []string{"", "(", "extra ==", "no_such == 'x'", "extra == 'x' extra", "'a' < 'b' and (", strings.Repeat("(", 1000)} {
		if marker(bad, (&Environment{}).variables("linux", "x")) {
			t.Errorf("%q holds", bad)
		}
	}
}

func TestParseRequirement(t *testing.T) {
	for text, want := range map[string]Requirement{
		"filelock":                 {Name: "filelock"},
		"nvidia_cublas.cu12 (==1)": {Name: "nvidia-cublas-cu12", Spec: "==1"},
		`triton~=3.9.0; platform_system == "Linux"`:                 {Name: "triton", Spec: "~=3.9.0", Marker: `platform_system == "Linux"`},
		"cuda-toolkit[cublas, cudart]==13.2.2 ; os_name == 'posix'": {Name: "cuda-toolkit", Extras: []string{"cublas", "cudart"}, Spec: "==13.2.2", Marker: "os_name == 'posix'"},
		"torch @ https://example.com/torch.whl":                     {Name: "torch"},
	} {
		got, ok := ParseRequirement(text)
		if !ok || got.Name != want.Name || got.Spec != want.Spec || got.Marker != want.Marker || strings.Join(got.Extras, ",") != strings.Join(want.Extras, ",") {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
	if r, ok := ParseRequirement("[]"); ok {
		t.Error(r)
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add("Metadata-Version: 2.4\nName: torch\nVersion: 2.9.0\nRequires-Dist: triton==3.5.0; platform_system == \"Linux\" and (python_version < '3.15' or extra == 'x')\n\nText")
	f.Add("Name: nvidia_x\r\nRequires-Dist: cuda-toolkit[a,b]==1.*,!=1.3; extra not in 'a'\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := metadata(strings.NewReader(text))
		e := &Environment{Python: "3.11.7", Machine: "x86_64", Packages: []Package{p}}
		e.settleRequirements("linux")
		for _, u := range e.Unmet() {
			if u.Need.Name != normal(u.Need.Name) || !matters(u.Need.Name) {
				t.Errorf("%+v", u)
			}
		}
		recorded(text)
		named(text)
		tensorflowCUDA(text)
		machine([]byte(text))
		if CompareVersions(text, text) != 0 {
			t.Errorf("%q is not itself", text)
		}
	})
}
