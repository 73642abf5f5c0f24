package presence

import (
	"cmp"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// most is what an answer has at most, in bytes.
const most = 1 << 20

// All asks every process that this user may ask, for wait at most, and removes what ended ones have left. Processes come by
// PID.
func All(wait time.Duration) []Process {
	own := Dir()
	sweep(own)
	paths := sockets(own)
	for _, pattern := range others() {
		dirs, _ := filepath.Glob(pattern) // the patterns are well-formed
		for _, dir := range dirs {
			if dir != own {
				paths = append(paths, sockets(dir)...)
			}
		}
	}
	return askAll(paths, wait)
}

// askAll asks the processes behind sockets, side by side.
func askAll(paths []string, wait time.Duration) (all []Process) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, path := range paths {
		asking.Go(func() {
			if p, err := ask(path, wait); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, p)
			}
		})
	}
	asking.Wait()
	sorting.By(all, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return all
}

// ask asks the process behind a socket.
func ask(path string, wait time.Duration) (p Process, err error) {
	c, err := net.DialTimeout("unix", path, wait)
	if err != nil {
		return p, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
		return p, err
	}
	if err := json.NewDecoder(io.LimitReader(c, most)).Decode(&p); err != nil {
		return p, err
	}
	if pid, ok := peer(c.(*net.UnixConn)); ok { // the system's word, by the numbers of this container
		p.Hidden = pid <= 0
		if !p.Hidden {
			p.PID = pid
		}
	}
	return p, nil
}
