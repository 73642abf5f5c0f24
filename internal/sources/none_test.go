//go:build !packed

package sources

import (
	"errors"
	"testing"
)

// TestNone: a program without a copy says so.
func TestNone(t *testing.T) {
	if dir, err := Folder(); Have() || dir != "" || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a copy in %q, %v", dir, err)
	}
}
