package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"sync"

	"github.com/warpline-ml/warpline/internal/gpusim/mutate"
)

// state is a file of what is known of the mutants of kernels, so that a run can go on where another was interrupted.
type state struct {
	path string
	mu   sync.Mutex
	done map[stateKey][]*mutate.Result
}

// stateKey is a kernel of a module, with how many of its mutants are tried.
type stateKey struct {
	Kernel string
	Module uint64 // hash of its PTX
	Sample int
	Seed   uint64
}

// stateLine is a line of the file, in JSON.
type stateLine struct {
	stateKey
	Results []*mutate.Result
}

func keyOf(s *mutate.Suite) stateKey {
	h := fnv.New64a()
	h.Write([]byte(s.Source))
	return stateKey{s.Name, h.Sum64(), s.Sample, s.Seed}
}

// openState reads a file of results, which need not exist. Without a path there is no file.
func openState(path string) (*state, error) {
	st := &state{path: path, done: map[stateKey][]*mutate.Result{}}
	f, err := os.Open(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for d := json.NewDecoder(bufio.NewReader(f)); d.More(); {
		var l stateLine
		if err := d.Decode(&l); err != nil {
			return nil, err
		}
		st.done[l.stateKey] = l.Results
	}
	return st, nil
}

// run tries the mutants of a kernel, or takes from the file what became of them.
func (st *state) run(s *mutate.Suite) ([]*mutate.Result, error) {
	key := keyOf(s)
	if results, ok := st.done[key]; ok {
		for _, r := range results {
			r.Known = s.Known[r.ID]
		}
		return results, nil
	}
	results, err := s.Run(1)
	if err != nil || st.path == "" {
		return results, err
	}
	line, err := json.Marshal(&stateLine{key, results})
	if err != nil {
		return nil, err
	}
	return results, st.append(append(line, '\n'))
}

func (st *state) append(line []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	f, err := os.OpenFile(st.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}
