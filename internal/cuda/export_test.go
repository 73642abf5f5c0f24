package cuda

import "github.com/warpline-ml/warpline/internal/device"

// Loaded waits for the modules that are compiled ahead of use.
func Loaded(d *Device) { d.loading.Wait() }

// Abandoned is how many blocks of fetches that nobody took wait to be reclaimed.
func Abandoned(q device.Queue) int {
	s := &q.(*queue).d.pinned
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.left)
}
