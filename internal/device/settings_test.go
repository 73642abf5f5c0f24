package device

import (
	"strings"
	"testing"
)

// TestSettings: what means nothing is refused wherever a device is opened, in words that say what would do.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		blocking, torch, waits string
		want                   Settings
		words                  string // of the error
		verbose, pin           string
	}{
		{"", "", "", Settings{}, "", "", ""},
		{"0", "", "warn", Settings{Waits: WarnWaits}, "", "", ""},
		{"1", "", "error", Settings{Blocking: true, Waits: FailWaits}, "", "", ""},
		{"", "1", "", Settings{Blocking: true}, "", "", ""},
		{"maybe", "", "", Settings{}, "WARPLINE_BLOCKING=maybe means nothing: 1 waits", "", ""},
		{"true", "", "", Settings{}, "WARPLINE_BLOCKING=true means nothing: 1 waits", "", ""},
		{"", "", "Warn", Settings{}, "WARPLINE_SYNC=Warn means nothing: warn logs", "", ""},
		{verbose: "1", want: Settings{Verbose: true}},
		{verbose: "0"},
		{pin: "1", want: Settings{Pin: true}},
		{pin: "yes", words: "WARPLINE_PIN=yes means nothing: 1 keeps"},
		{verbose: "2", words: "WARPLINE_VERBOSE=2 means nothing: 1 prints"},
	} {
		t.Setenv(VerboseEnv, c.verbose)
		t.Setenv(PinEnv, c.pin)
		t.Setenv(BlockingEnv, c.blocking)
		t.Setenv("CUDA_LAUNCH_BLOCKING", c.torch)
		t.Setenv(WaitsEnv, c.waits)
		got, err := FromEnvironment()
		_, _, open := Open("settings")
		if c.words == "" {
			if got != c.want || err != nil || open != nil {
				t.Errorf("%+v: got %+v, %v; Open: %v", c, got, err, open)
			}
			continue
		}
		if err == nil || open == nil || !strings.HasPrefix(err.Error(), c.words) || !strings.Contains(open.Error(), err.Error()) {
			t.Errorf("%+v: got %v; Open: %v", c, err, open)
		}
	}
}
