package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/drivers"
	"github.com/warpline-ml/warpline/internal/fatbin"
	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/pyenv"
)

// pythonRules judge builds of PyTorch, JAX and TensorFlow by what their files say.
var pythonRules = slices.Concat(
	python("D34", "build", "frameworks are built for cards", (*Facts).hasCard, sawDevice, otherBuild),
	python("D09", "code", "frameworks have code for the cards", func(f *Facts) bool { return len(f.chips()) > 0 }, served, noCode),
	python("D10", "ptx", "the driver compiles the frameworks' PTX", func(f *Facts) bool { return len(f.chips()) > 0 && f.cuda() != [2]int{} }, served, newerPTX),
	python("D07", "driver", "the driver is new enough for the frameworks", func(f *Facts) bool { return f.anyDriver() != "" || f.cuda() != [2]int{} }, sawFloor, driverOld),
	python("D40", "missing", "frameworks have the libraries that they were installed with", nil, recorded, librariesMissing),
	[]rule{
		{id: "D40", name: "python-versions", step: P9, what: "packages are of the versions that others ask for", can: (*Facts).sawPython, saw: (*Facts).sawRequires, judge: every(versionsDiffer)},
		{id: "D40", name: "python-copies", step: P9, what: "Python imports the framework that was installed last", can: (*Facts).sawPython, saw: (*Facts).sawBuilds, judge: every(copies)},
		{id: "D40", name: "python-local", step: P9, what: "the working directory has no torch of its own", can: (*Facts).sawPython, saw: (*Facts).sawTorch, judge: localTorch},
		{id: "D40", name: "python-loader", step: P9, what: "LD_LIBRARY_PATH puts no older library before those of the frameworks", can: (*Facts).sawPython, saw: (*Facts).sawLoader, judge: every(loaderOlder)},
		{id: "D40", name: "python-gone", step: P9, breaks: true, what: "environments have an interpreter", can: (*Facts).sawPython, saw: (*Facts).sawInterpreter, judge: interpreterGone},
		{id: "D34", name: "rosetta", step: P9, what: "Python is built for this Mac's chip", can: func(f *Facts) bool { return f.appleChip() && f.sawPython() }, saw: (*Facts).sawMachine, judge: rosetta},
		{id: "D34", name: "macos", step: P9, what: "macOS is new enough for mps", can: func(f *Facts) bool { return f.appleChip() && f.Platform.Release != "" }, saw: (*Facts).sawRelease, judge: oldMacOS},
	})

// build is a framework in an environment.
type build struct {
	*pyenv.Environment
	*pyenv.Framework
}

// String names a build.
func (b build) String() string { return fmt.Sprintf("%s %s in %s", b.Name, b.Version, b.Root) }

// about is evidence of a build.
func (b build) about(name string, v any, format string, args ...any) finding.Evidence {
	e := value(name, v, format, args...)
	e.Text = fmt.Sprintf("%s (%s): %s", b, strings.Join(b.Environment.By, ", "), e.Text)
	return e
}

// python gives a rule about builds two rows: one for what commands in this terminal import, which keeps a card from computing,
// and one for other environments. saw tells of a build that it can be judged: all is well only if every build can.
func python(id, name, what string, can func(*Facts) bool, saw func(*Facts, build) bool, judge func(*Facts, build) []ill) []rule {
	row := func(active bool) rule {
		r := rule{id: id, name: "python-" + name, step: P9, breaks: active, what: what}
		if !active {
			r.name, r.what = r.name+"-elsewhere", what+" in other environments"
		}
		r.can = func(f *Facts) bool {
			return slices.ContainsFunc(f.builds(), func(b build) bool { return b.Active() == active }) && (can == nil || can(f))
		}
		r.saw = func(f *Facts) bool {
			return !slices.ContainsFunc(f.builds(), func(b build) bool { return b.Active() == active && !saw(f, b) })
		}
		r.judge = func(f *Facts) (all []ill) {
			for _, b := range f.builds() {
				if b.Active() == active {
					all = append(all, judge(f, b)...)
				}
			}
			if active {
				return all
			}
			return merge(gains(all, "that environment computes on the card"))
		}
		return r
	}
	return []rule{row(true), row(false)}
}

// every judges all builds.
func every(judge func(*Facts, build) []ill) func(*Facts) []ill {
	return func(f *Facts) (all []ill) {
		for _, b := range f.builds() {
			all = append(all, judge(f, b)...)
		}
		return gains(merge(all), "what is imported and loaded is what was installed")
	}
}

// merge makes one of several that are the same in other environments.
func merge(all []ill) []ill {
	if len(all) < 2 {
		return all
	}
	first := all[0]
	first.Title += fmt.Sprintf("; %d more like it", len(all)-1)
	for _, x := range all[1:] {
		first.Evidence = append(first.Evidence, x.Evidence...)
	}
	return []ill{first}
}

func (f *Facts) sawPython() bool { return f.Python != nil && len(f.Python.Environments) > 0 }

// builds are all frameworks of all environments.
func (f *Facts) builds() (all []build) {
	if f.Python == nil {
		return nil
	}
	for _, e := range f.Python.Environments {
		for i := range e.Frameworks {
			all = append(all, build{e, &e.Frameworks[i]})
		}
	}
	return all
}

// chip is a card, by what code it takes.
type chip struct {
	name    string
	compute [2]int
}

// chips are the cards that CUDA tells of, or else those whose numbers on the bus tell what they are.
func (f *Facts) chips() (all []chip) {
	for _, c := range f.CUDA.Cards {
		if c.Compute != [2]int{} {
			all = append(all, chip{c.Name, c.Compute})
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, p := range f.cards() {
		if c, ok := cards.ChipOf(p.Device); ok {
			all = append(all, chip{fmt.Sprintf("the %s card at %s", c.Name, p.Address), c.Compute})
		}
	}
	for _, a := range f.Adapters {
		if c, ok := cards.ChipOf(a.Device); ok && a.Vendor == nvidia && len(f.cards()) == 0 {
			all = append(all, chip{a.Name, c.Compute})
		}
	}
	return all
}

// ofWindows reports whether the driver is that of Windows, whose versions count otherwise.
func (f *Facts) ofWindows() bool { return f.OS == "windows" || f.Platform.WSL || f.Platform.DXG }

// system is the one whose versions of the driver count.
func (f *Facts) system() string {
	if f.ofWindows() {
		return "windows"
	}
	return "linux"
}

// anyDriver is the driver's version, of Windows' list where nothing else tells.
func (f *Facts) anyDriver() string {
	if v := f.driver(); v != "" && (!f.ofWindows() || f.NVML.Driver != "") { // under Windows the file of libcuda does not tell
		return v
	}
	for _, a := range f.Adapters {
		if a.Vendor == nvidia && a.Version != "" {
			return a.Version
		}
	}
	return ""
}

// cuda is the version of CUDA that the driver brings: as it says itself, or by its branch.
func (f *Facts) cuda() [2]int {
	if v := f.CUDA.Version; v > 0 {
		return [2]int{v / 1000, v % 1000 / 10}
	}
	if p := parts(f.NVML.CUDA); len(p) >= 2 {
		return [2]int{p[0], p[1]}
	}
	return drivers.CUDA(f.anyDriver())
}

// otherBuild finds builds that compute on something else than NVIDIA's cards.
func otherBuild(f *Facts, b build) []ill {
	if b.Device == "cuda" || b.Device == "" {
		return nil
	}
	what := map[string]string{"cpu": "the CPU alone", "rocm": "AMD's cards", "xpu": "Intel's cards", "metal": "Apple's chips"}[b.Device]
	evidence := []finding.Evidence{b.about("build", b.Device, "it is built for %s", what)}
	if b.Installer() != "" {
		evidence = append(evidence, value("installer", b.Installer(), "%s installed it", b.Installer()))
	}
	do, fix := f.reinstall(b)
	return one(fmt.Sprintf("%s is built for %s: it never sees the NVIDIA card that is here", b, what), evidence, do, fix, finding.High,
		b.Path+" has a version.py that names CUDA, or another copy is imported")
}

// noCode finds cards that a library has neither machine code nor PTX for.
func noCode(f *Facts, b build) []ill {
	for _, c := range f.chips() {
		if _, ok := b.Serves(c.compute); ok || len(b.Code) == 0 || b.Device != "cuda" {
			continue
		}
		how := "new"
		if sm := 10*c.compute[0] + c.compute[1]; sm < b.Code[0].SM {
			how = "old"
		}
		do, fix := f.reinstall(b)
		return one(fmt.Sprintf("%s is too %s for %s: no kernel image for sm_%d%d", c.name, how, b, c.compute[0], c.compute[1]),
			[]finding.Evidence{b.about("code", codeList(b), "most of %s has code for %s only", b.Library, codeList(b)), value("compute", c.compute, "%s takes sm_%d%d, or PTX that is no newer", c.name, c.compute[0], c.compute[1])},
			do, fix+"; torch.cuda.is_available() is True all the same", finding.High, "cuobjdump --list-elf lists code for the card in "+b.Library)
	}
	return nil
}

func codeList(b build) string {
	return list(b.Code, func(r fatbin.Row) string { return r.String() })
}

// newerPTX finds cards that only PTX serves, of a version that the driver does not compile.
func newerPTX(f *Facts, b build) []ill {
	for _, c := range f.chips() {
		r, ok := b.Serves(c.compute)
		need, have := drivers.PTXNeeds(r.Version), f.cuda()
		if !ok || !r.PTX || slices.Compare(have[:], need[:]) >= 0 {
			continue
		}
		do, fix := f.newerDriver()
		return one(fmt.Sprintf("the driver cannot compile what %s has for %s", b, c.name),
			[]finding.Evidence{b.about("ptx", r.Version, "for sm_%d%d it has PTX alone, of version %d.%d, which takes a driver of CUDA %d.%d", c.compute[0], c.compute[1], r.Version[0], r.Version[1], need[0], need[1]),
				value("cuda", have, "the driver brings CUDA %d.%d", have[0], have[1])},
			do, fix, finding.High, "nvidia-smi shows a newer CUDA version")
	}
	return nil
}

// driverOld finds builds whose CUDA the driver is too old for.
func driverOld(f *Facts, b build) []ill {
	p := parts(b.CUDA)
	if b.Device != "cuda" || len(p) == 0 {
		return nil
	}
	have, driver := f.cuda(), f.anyDriver()
	need := drivers.Min(b.CUDA, f.system())
	// From 11 on, a driver of the same major version is enough; before, the version itself.
	fits := have[0] > p[0] || have[0] == p[0] && (p[0] >= 11 || len(p) > 1 && have[1] >= p[1])
	if f.CUDA.Version > 0 && fits || need == "" || driver == "" && have == [2]int{} {
		return nil
	}
	if f.CUDA.Version == 0 && (driver == "" || drivers.Compare(driver, need) >= 0) {
		return nil
	}
	do, fix := f.newerDriver()
	if other, text := f.reinstall(b); other != "" && strings.Contains(other, "/whl/") {
		fix += "; or an older build: " + other + " (" + text + ")"
	}
	return one(fmt.Sprintf("the driver is too old for %s", b), []finding.Evidence{b.about("cuda", b.CUDA, "it is built with CUDA %s, which takes driver %s or later", b.CUDA, need),
		value("driver", driver, "the driver is %s, with CUDA %d.%d", known(driver), have[0], have[1])}, do, fix, finding.High, "nvidia-smi shows a newer driver")
}

func known(text string) string {
	if text == "" {
		return "of an unknown version"
	}
	return text
}

// librariesMissing finds libraries that a framework cannot load: packages that are not there, files that are cut or gone.
func librariesMissing(_ *Facts, b build) []ill {
	if b.Name != "torch" || b.Device != "cuda" && b.Device != "" {
		return nil
	}
	var evidence []finding.Evidence
	for _, u := range b.Unmet() {
		if u.Have == "" && strings.HasPrefix(u.Need.Name, "nvidia-") {
			evidence = append(evidence, b.about("missing", u.Need.Name, "%s asks for %s%s, which is not installed", u.Of, u.Need.Name, u.Need.Spec))
		}
	}
	for _, p := range b.Packages {
		for _, d := range p.Damaged {
			state := fmt.Sprintf("has %d of %d bytes", d.Have, d.Want)
			if d.Have < 0 {
				state = "is gone"
			}
			evidence = append(evidence, b.about("damaged", d.Path, "%s of %s %s", d.Path, p.Name, state))
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	return one(fmt.Sprintf("%s lacks libraries that it was installed with", b), evidence, b.again(),
		"a full disk or a broken-off installation leaves such", finding.High, "python -c 'import torch' works")
}

// versionsDiffer finds packages of other versions than others were built for.
func versionsDiffer(_ *Facts, b build) []ill {
	if b.Name != "torch" {
		return nil
	}
	var evidence []finding.Evidence
	var again []string
	for _, u := range b.Unmet() {
		if u.Have == "" && (strings.HasPrefix(u.Need.Name, "nvidia-") || u.Of == "tensorflow") {
			continue // librariesMissing
		}
		have := "none is installed"
		if u.Have != "" {
			have = "the one that is imported is " + u.Have
		}
		evidence = append(evidence, b.about("requires", u.Need.Name+u.Need.Spec, "%s asks for %s%s: %s", u.Of, u.Need.Name, u.Need.Spec, have))
		if again = append(again, u.Of); u.Of == "torch" {
			again[len(again)-1] = u.Need.Name + u.Need.Spec
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	slices.Sort(again)
	return one(fmt.Sprintf("packages beside %s were built for other versions of each other", b), evidence, b.pip("install --upgrade", slices.Compact(again)...),
		"torchvision, torchaudio and triton each fit one version of torch", finding.Medium, "they import, and their operators work")
}

// copies finds frameworks that hide others, and those of half an upgrade.
func copies(_ *Facts, b build) []ill {
	var evidence []finding.Evidence
	for _, c := range b.Copies {
		if c.Version != b.Version || c.Version == "" {
			evidence = append(evidence, b.about("hidden", c.Path, "it is imported from %s (%s), and hides %s", b.Path, b.Framework.By, strings.TrimSpace(c.Version+" in "+c.Path)))
		}
	}
	if b.Recorded != "" {
		evidence = append(evidence, b.about("recorded", b.Recorded, "its files say %s, its installation says %s: an upgrade was broken off", b.Version, b.Recorded))
	}
	if len(evidence) == 0 {
		return nil
	}
	for _, l := range b.Leftovers {
		evidence = append(evidence, b.about("leftover", l, "%s is left of an upgrade", l))
	}
	do, fix := "unset PYTHONPATH", ""
	switch {
	case b.Recorded != "":
		do, fix = b.again(), "close what has its files open first"
	case b.Framework.By == "user site":
		do, fix = "export PYTHONNOUSERSITE=1", "or uninstall that of the user's site"
	case b.Framework.By != "PYTHONPATH":
		do, fix = b.pip("uninstall", b.Name), "once for each copy, then install it again"
	}
	return one(fmt.Sprintf("%s is not the only copy that Python could import", b), evidence, do, fix, finding.Medium, "python -c 'import "+b.Name+"; print("+b.Name+".__file__)' prints the one that you want")
}

// localTorch finds a torch in the working directory.
func localTorch(f *Facts) []ill {
	if len(f.Python.Local) == 0 || !slices.ContainsFunc(f.builds(), func(b build) bool { return b.Name == "torch" && b.Active() }) {
		return nil
	}
	at := f.Python.Local[0].Path
	return gains(one("the working directory has a torch of its own, which hides the installed one", []finding.Evidence{value("local", at, "%s comes first in python -c, python -m and notebooks", at)}, "cd ..",
		"or rename it, if it is a file of yours", finding.Medium, "python -c 'import torch; print(torch.__file__)' prints the installed one"), "the installed torch is imported")
}

// loaderOlder finds libraries of LD_LIBRARY_PATH that are older than those they hide.
func loaderOlder(f *Facts, b build) []ill {
	var evidence []finding.Evidence
	for _, c := range f.Python.Clashes(b.Environment, b.Framework) {
		if c.Older {
			evidence = append(evidence, b.about("library", c.Library.Path, "%s of LD_LIBRARY_PATH is of version %s and comes before that of %s %s", c.Library.Path, c.Library.Version, c.Package.Name, c.Package.Version))
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	return one("LD_LIBRARY_PATH puts older libraries before those that "+b.Name+" was installed with", evidence, "unset LD_LIBRARY_PATH",
		"frameworks find their own; an undefined symbol of libnvJitLink or cuDNN errors come of it", finding.Medium, "LD_DEBUG=libs shows the framework's own loaded")
}

// interpreterGone finds environments in use whose interpreter was removed.
func interpreterGone(f *Facts) (all []ill) {
	for _, e := range f.Python.Environments {
		if e.BaseGone == "" || !e.Active() {
			continue
		}
		all = append(all, one(fmt.Sprintf("the environment %s has lost its Python", e.Root), []finding.Evidence{value("home", e.BaseGone, "it was made from the interpreter in %s, which is gone", e.BaseGone)},
			"python3 -m venv --clear "+quote(e.Root), "then install its packages again: an upgrade of the system's Python or a moved folder does this", finding.High, quote(e.Root+"/bin/python")+" -V works")...)
	}
	return all
}

func (f *Facts) appleChip() bool { return f.OS == "darwin" && strings.HasPrefix(f.CPU.Model, "Apple") }

// rosetta finds interpreters for Intel's processors on Apple's chips, whose PyTorch has no mps.
func rosetta(f *Facts) (all []ill) {
	for _, e := range f.Python.Environments {
		w := e.Framework("torch")
		if w == nil || e.Machine != "x86_64" || !e.Active() {
			continue
		}
		b := build{e, w}
		all = append(all, one(fmt.Sprintf("%s is for Intel's processors: it runs translated, and has no mps", b), []finding.Evidence{b.about("machine", e.Machine, "its interpreter %s is built for x86_64 alone", e.Interpreter), value("chip", f.CPU.Model, "this Mac has an %s", f.CPU.Model)},
			"arch -arm64 /usr/bin/python3 -m venv .venv && .venv/bin/python -m pip install torch", "or a Python that is installed for arm64", finding.High, "file "+quote(e.Interpreter)+" says arm64")...)
	}
	return all
}

// mpsNeeds is the oldest macOS that PyTorch's mps runs on (docs.pytorch.org, MPS backend); newer PyTorch asks for 14.
var mpsNeeds = []int{12, 3}

func oldMacOS(f *Facts) []ill {
	if v := parts(f.Platform.Release); len(v) == 0 || slices.Compare(v, mpsNeeds) >= 0 {
		return nil
	}
	return one("this macOS is too old for PyTorch's mps", []finding.Evidence{value("release", f.Platform.Release, "macOS %s is older than 12.3", f.Platform.Release)}, "softwareupdate --list", "then upgrade macOS; newer PyTorch asks for 14", finding.High,
		"python -c 'import torch; print(torch.backends.mps.is_available())' prints True")
}

// newerDriver is how to get one.
func (f *Facts) newerDriver() (do, fix string) {
	if f.ofWindows() {
		return "start https://www.nvidia.com/drivers", "typed in Windows: install the newest driver for the card"
	}
	if f.contained() {
		return "nvidia-smi", "typed on the host, which must get a newer driver: a container has none of its own"
	}
	return install(f), "the newest branch that supports the card, then reboot"
}

// wheels are the builds of PyTorch's makers, newest first, and the cards they are for: PyTorch 2.9 (October 2025), and of cu118 the last
// one, 2.7.1.
var wheels = []struct {
	tag         string
	cuda        [2]int
	first, last [2]int
}{
	{"cu130", [2]int{13, 0}, [2]int{7, 5}, [2]int{12, 1}}, {"cu128", [2]int{12, 0}, [2]int{7, 0}, [2]int{12, 0}}, {"cu126", [2]int{12, 0}, [2]int{5, 0}, [2]int{9, 0}}, {"cu118", [2]int{11, 0}, [2]int{5, 0}, [2]int{9, 0}},
}

// wheel is the build that fits all cards and the driver; empty if none does.
func (f *Facts) wheel() string {
	have := f.cuda()
	for _, w := range wheels {
		fits := !slices.ContainsFunc(f.chips(), func(c chip) bool {
			return slices.Compare(c.compute[:], w.first[:]) < 0 || slices.Compare(c.compute[:], w.last[:]) > 0
		})
		if fits && (have == [2]int{} || slices.Compare(have[:], w.cuda[:]) >= 0) {
			return w.tag
		}
	}
	return ""
}

// reinstall is the command that replaces a build by one that fits the machine.
func (f *Facts) reinstall(b build) (do, fix string) {
	switch {
	case b.Name == "torch" && b.Source == "conda":
		return "conda install -p " + quote(b.Root) + " -c conda-forge pytorch-gpu", "the package cpuonly must go, if it is there"
	case b.Name == "torch":
		tag := f.wheel()
		if tag == "" {
			return "lspci -nn -d 10de:", "no build of PyTorch's makers fits this card and driver together: a newer driver, a build from source, or " + Selector
		}
		packages := []string{"torch"}
		for _, name := range []string{"torchvision", "torchaudio"} {
			if b.Environment.Package(name) != nil {
				packages = append(packages, name)
			}
		}
		return b.pip("install --force-reinstall", packages...) + " --index-url https://download.pytorch.org/whl/" + tag, "of October 2025; what there is today: " + Selector
	case f.OS == "windows":
		return "wsl --install", b.Name + " has no build for cards on Windows itself: install it in WSL"
	case b.Name == "jax":
		major := max(12, min(f.cuda()[0], 13))
		return b.pip("install --upgrade", fmt.Sprintf(`"jax[cuda%d]"`, major)), ""
	}
	return b.pip("install --upgrade", `"tensorflow[and-cuda]"`), ""
}

// Installer is what installed a framework.
func (b build) Installer() string {
	if p := b.Environment.Package(b.Name); p != nil {
		return p.Installer
	}
	return ""
}

// pip is a command of the environment's package installer.
func (b build) pip(command string, packages ...string) string {
	tool := quote(b.Interpreter) + " -m pip " + command
	if b.Installer() == "uv" {
		tool = "uv pip " + strings.Replace(command, "--force-reinstall", "--reinstall", 1) + " --python " + quote(b.Root)
	}
	return tool + " " + strings.Join(packages, " ")
}

// again is the command that installs the same build once more: its local version names the index that has it.
func (b build) again() string {
	version, local, _ := strings.Cut(b.Version, "+")
	command := b.pip("install --force-reinstall", b.Name+"=="+version)
	if b.Name == "torch" && (strings.HasPrefix(local, "cu") || local == "cpu") {
		command += " --index-url https://download.pytorch.org/whl/" + local
	}
	return command
}

// quote makes a path one word of a shell: with the quotes that Windows knows too, unless it has what those do not keep.
func quote(path string) string {
	switch {
	case !strings.ContainsAny(path, " '\"$&;()<>|*?`"):
		return path
	case strings.ContainsAny(path, "\"$`"):
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return `"` + path + `"`
}
