package cpufeat

import "testing"

func TestParseCPUInfo(t *testing.T) {
	for _, c := range []struct {
		name, text, model string
		cores             int
	}{
		{"empty", "", "", 0},
		{"two threads of one core, and another socket", "processor\t: 0\nmodel name\t: Some CPU @ 2.00GHz\nphysical id\t: 0\ncore id\t\t: 0\n\n" +
			"processor\t: 1\nmodel name\t: Some CPU @ 2.00GHz\nphysical id\t: 0\ncore id\t\t: 0\n\n" +
			"processor\t: 2\nmodel name\t: Some CPU @ 2.00GHz\nphysical id\t: 1\ncore id\t\t: 0\n", "Some CPU @ 2.00GHz", 2},
		{"ARM", "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\nprocessor\t: 1\n", "", 0},
		{"no colons", "a\nb\n\nc", "", 0},
	} {
		if model, cores := parseCPUInfo(c.text); model != c.model || cores != c.cores {
			t.Errorf("%s: %q, %d cores; want %q, %d", c.name, model, cores, c.model, c.cores)
		}
	}
}
