package train

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// ProfileInRun, as the Profile of a [Config] or a [Loop], is the folder profile of the run, or profile-2 and so on where that is taken.
const ProfileInRun = "RUN/profile"

// Profiled is what a run left of its window of steps.
type Profiled struct {
	*prof.Profile
	Dir   string // with the files of it
	First int    // the first step of the window, from 1
	Err   error  // of writing the files; the run went on
}

// profiling is the window of a run that is profiled. A nil one does nothing. Memory is recorded in the step before the window,
// or in its first where there is none before, so that recording it takes no time of the others.
type profiling struct {
	p       *prof.Profiler
	history *prof.History // nil until its step
	dir     string
	begun   int // steps before the run
	first   int // the window's first step
	memory  int // the step whose memory is recorded
	done    *Profiled
}

// newProfiling opens the window that the run is asked for, which must lie within its steps, or returns nil.
func newProfiling(s *session) (*profiling, error) {
	if s.Profile == "" {
		return nil, nil
	}
	if s.dry() {
		return nil, fail("profile on a simulated GPU, sim:CARD", "%s on %s, which computes nothing and takes no time", s.named("profile"), s.env.Device().Name())
	}
	if left := s.Steps - s.done; left < s.ProfileAfter+s.ProfileSteps {
		return nil, fail(fmt.Sprintf("give %s %d, or a shorter %s or %s", s.named("steps"), s.done+s.ProfileAfter+s.ProfileSteps, s.named("profile-steps"), s.named("profile-after")),
			s.named("profile")+" needs %d steps of warm-up and a window of %d, and %d steps are left", s.ProfileAfter, s.ProfileSteps, left)
	}
	dir, err := s.profileFolder()
	if err != nil {
		return nil, err
	}
	w := &profiling{dir: dir, begun: s.done, first: s.done + s.ProfileAfter + 1}
	w.memory = w.first - min(1, s.ProfileAfter)
	w.p = prof.New(prof.Config{Skip: max(0, s.ProfileAfter-1), Warmup: min(1, s.ProfileAfter), Active: s.ProfileSteps, Repeat: 1, Memory: true})
	return w, nil
}

// profileFolder is where the files go. What is there is not overwritten.
func (s *session) profileFolder() (string, error) {
	if s.Profile != ProfileInRun {
		return s.Profile, vacant(s.named, "profile", s.Profile)
	}
	if s.Out == "" {
		return "", fail("give Profile a folder", "a profile in the run's folder, and the run has none")
	}
	for n := 1; ; n++ {
		dir := profileIn(s.Out, n)
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return dir, nil
		}
	}
}

// profileIn is the folder of a run's nth profile, from 1.
func profileIn(run string, n int) string {
	if n == 1 {
		return filepath.Join(run, "profile")
	}
	return filepath.Join(run, fmt.Sprintf("profile-%d", n))
}

// LatestProfile is the folder of a run's latest profile, or of its first where there is none.
func LatestProfile(run string) string {
	for n := 1; ; n++ {
		if _, err := os.Stat(profileIn(run, n+1)); err != nil {
			return profileIn(run, n)
		}
	}
}

// watch is the env of steps, in which the window is recorded.
func (w *profiling) watch(env *tensor.Env) *tensor.Env {
	if w == nil {
		return env
	}
	w.remember(env, w.begun)
	return env.Profiled(w.p)
}

// annotate makes a tool that watches the program, as Nsight Systems does, show its ranges until end.
func (s *session) annotate() (end func()) {
	n, err := prof.NewNsight()
	if err != nil {
		s.Watch.Note(err.Error())
		return func() {}
	}
	s.env.Profiled(n)
	return n.Stop
}

// remember begins to record memory, if its step is the next after one.
func (w *profiling) remember(env *tensor.Env, after int) {
	if w.memory == after+1 {
		w.history = prof.NewHistory(prof.HistoryConfig{})
		env.Profiled(w.history)
	}
}

// step tells that a step was asked for. At the end of the window its files are written; an error of that is a note, and the
// run goes on.
func (w *profiling) step(s *session) {
	if w == nil || w.done != nil {
		return
	}
	defer machine.AllowWaits(s.env.Device())()
	if w.history != nil {
		w.history.Stop()
	} else {
		w.remember(s.env, s.queued)
	}
	w.p.Step()
	if w.p.Last() == nil {
		return
	}
	w.p.Stop()
	w.done = &Profiled{Profile: w.p.Last(), Dir: w.dir, First: w.first}
	w.done.Unreached = slices.Sorted(maps.Keys(s.told))
	if w.done.Err = w.write(); w.done.Err != nil {
		s.Watch.Note(fmt.Sprintf("the profile of steps %d to %d is not written: %v", w.first, w.first+s.ProfileSteps-1, w.done.Err))
	}
}

// stop throws away a window that the run did not come to the end of.
func (w *profiling) stop() {
	if w != nil {
		w.p.Discard()
		if w.history != nil {
			w.history.Stop()
		}
	}
}

// result is what the run left of the window, nil without one.
func (w *profiling) result() *Profiled {
	if w == nil {
		return nil
	}
	return w.done
}

// Files of a profile's folder.
const (
	TraceFile  = "trace.json.gz" // for Perfetto, chrome://tracing and HolisticTraceAnalysis
	DeviceFile = "device.pb.gz"  // device time, for go tool pprof
	HostFile   = "host.pb.gz"    // host time

	SnapshotFile = "snapshot.pickle" // the memory of one step, for PyTorch's tools
	MemoryFile   = "memory.html"     // the same as a page for a browser
	HeapFile     = "heap.pb.gz"      // what was in memory after it, for go tool pprof

	ProfileFile = "profile.json" // for prof.Read and warpline profile
)

// ProfileFiles are the names of the files of a profile's folder.
func ProfileFiles() (names []string) {
	for _, f := range (&profiling{done: &Profiled{}}).files() {
		names = append(names, f.name)
	}
	return names
}

// moments are the points of memory that a profile keeps; its page has more.
const moments = 200

// profileFile is one of a profile's folder.
type profileFile struct {
	name  string
	write func(path string) error
}

func (w *profiling) files() []profileFile {
	p, h := w.done.Profile, w.history
	return []profileFile{
		{TraceFile, p.WriteTrace}, {DeviceFile, p.WritePprof}, {HostFile, p.WriteHostPprof}, {ProfileFile, p.Write},
		{SnapshotFile, h.WriteSnapshot}, {HeapFile, h.WriteHeap}, {MemoryFile, h.WritePage},
	}
}

// write writes the files that can be written.
func (w *profiling) write() (err error) {
	if err := os.MkdirAll(w.dir, 0o777); err != nil {
		return err
	}
	if w.done.Memory, err = w.history.Timelines(moments); err != nil {
		return err
	}
	for _, f := range w.files() {
		err = errors.Join(err, f.write(filepath.Join(w.dir, f.name)))
	}
	return err
}
