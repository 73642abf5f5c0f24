package check

import (
	"strings"
	"testing"
)

// TestTimes: on a simulated card what operations take is what the model says, the same each time; the table says that nothing is
// measured.
func TestTimes(t *testing.T) {
	list, err := Times(t.Context(), "sim:a100-80")
	if err != nil || len(list) != len(timedOps) {
		t.Fatal(list, err)
	}
	for _, x := range list {
		if x.Card != "a100-80" || !(x.Seconds > 1e-6 && x.Seconds < 1e-3) || x.Ratio != 1 || x.Model != x.Seconds {
			t.Errorf("%+v", x)
		}
	}
	if text := TimesText(list, "sim:a100-80", 100); !strings.Contains(text, "softmax") || !strings.Contains(text, "nothing is measured") {
		t.Error(text)
	}
}
