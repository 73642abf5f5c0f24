package exercise

import "testing"

// TestPublished: what the go command calls builds in a checkout is no version that it can fetch.
func TestPublished(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v0.4.0-rc.1": true, "(devel)": false, "": false,
		"v0.0.0-20261128204818-9950265d5be7": false, "v0.0.0-20261128204818-9950265d5be7+dirty": false,
		"v1.2.4-0.20261128204818-9950265d5be7": false, "v1.3.0-rc.1.0.20261128204818-9950265d5be7": false,
	} {
		if got := Published(version); got != want {
			t.Errorf("%q: published %v", version, got)
		}
	}
}
