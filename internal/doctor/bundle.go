package doctor

import (
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Bundle is a copy of facts for a ticket: of every text what its field's form lets through, and nothing of fields without a form.
// A form is a list of what is allowed, so that names of people, machines and folders, addresses, serial numbers and tokens stay
// here wherever they turn up.
func Bundle(f *Facts) *Facts {
	out := copied(reflect.ValueOf(f).Elem(), "").Interface().(Facts)
	return &out
}

// copied is a deep copy with each text in its form.
func copied(v reflect.Value, form string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(allowed(form, v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(copied(v.Elem(), form))
		}
	case reflect.Slice:
		copySlice(out, v, form)
	case reflect.Map:
		copyMap(out, v, form)
	case reflect.Struct:
		copyStruct(out, v)
	case reflect.Interface: // of any form: none is known
	default:
		out.Set(v)
	}
	return out
}

// copySlice leaves out texts of which nothing is left.
func copySlice(out, v reflect.Value, form string) {
	if v.IsNil() {
		return
	}
	out.Set(reflect.MakeSlice(v.Type(), 0, v.Len()))
	for i := range v.Len() {
		if c := copied(v.Index(i), form); c.Kind() != reflect.String || c.Len() > 0 {
			out.Set(reflect.Append(out, c))
		}
	}
}

func copyMap(out, v reflect.Value, form string) {
	if v.IsNil() {
		return
	}
	out.Set(reflect.MakeMap(v.Type()))
	for it := v.MapRange(); it.Next(); {
		key, value := it.Key().String(), it.Value()
		switch {
		case form == "env":
			if f, listed := Variables[key]; listed {
				out.SetMapIndex(it.Key(), reflect.ValueOf(allowed(f, value.String())))
			}
		case form == "param":
			if slices.Contains(parameterNames, key) && parameterForm.MatchString(value.String()) {
				out.SetMapIndex(it.Key(), value)
			}
		case form != "" && allowed(form, key) == key && value.Kind() != reflect.String:
			out.SetMapIndex(it.Key(), value)
		}
	}
}

func copyStruct(out, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() { // time.Time, which names nobody
			out.Set(v)
			return
		}
		out.Field(i).Set(copied(v.Field(i), field.Tag.Get("bundle")))
	}
}

// allowed is what of a text its form lets through.
func allowed(form, text string) string {
	if f := forms[form]; f != nil && text != "" {
		return f(text)
	}
	return ""
}

// Regular expressions of forms.
var (
	versionText   = regexp.MustCompile(`^v?(\d{1,4}(?:\.\d{1,3}){0,2})$`)
	longVersion   = regexp.MustCompile(`^(\d{1,2}\.\d{1,2})(?:\.\d{1,4}){2}$`)
	releaseText   = regexp.MustCompile(`^(\d{1,2}\.\d{1,3}\.\d{1,3})(-\d{1,4})?(?:[-+.~][A-Za-z0-9._+~-]*)?$`)
	pciText       = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	cpusText      = regexp.MustCompile(`^[0-9]{1,4}([,-][0-9]{1,4})*$`)
	numberText    = regexp.MustCompile(`^-?[0-9]{1,6}$`)
	workspaceText = regexp.MustCompile(`^(:[0-9]{1,6}:[0-9]{1,3})+$`)
	nodeForm      = regexp.MustCompile(`^/dev/nvidia([0-9]{1,3}|ctl|-uvm|-uvm-tools|-modeset|-caps/nvidia-cap[0-9]{1,4})$`)
	interfaceText = regexp.MustCompile(`^(lo|eth[0-9]{1,2}|en[ops][0-9]{1,3}(s[0-9]{1,3})?(f[0-9]{1,2})?(np[0-9]{1,2})?|ib[0-9]{1,2}|docker[0-9]?|virbr[0-9]|wlan[0-9]|bond[0-9]|mlx[45]_[0-9]{1,2}:[0-9])$`)
	devicesText   = regexp.MustCompile(`^[abc] [0-9*]{1,4}:[0-9*]{1,4} [rwm]{1,3}$`)
	parameterForm = regexp.MustCompile(`^([0-9]{1,6}|""|driver|numa)$`)
	modelText     = regexp.MustCompile(`^[A-Z]{0,3}[0-9]{1,4}[A-Z]{0,2}[0-9]?$`)
	idsText       = regexp.MustCompile(`^[0-9a-f]{4}:[0-9a-f]{4}(,[0-9a-f]{4}:[0-9a-f]{4})*$`)
	cudaFolder    = regexp.MustCompile(`^cuda(-[0-9]{1,2}(\.[0-9]{1,2})?)?$`)
	packageText   = regexp.MustCompile(`^(torch|torchvision|torchaudio|pytorch(-cuda|-gpu|-cpu|-mutex|-triton|-triton-rocm)?|triton|cpuonly|python|jax|jaxlib|jax-cuda1[0-9]-(plugin|pjrt)|tensorflow(-cpu|-gpu|-intel|-macos|-metal)?|cuda-toolkit|nvidia-(cublas|cuda-(runtime|nvrtc|cupti)|cudnn|cufft|cufile|curand|cusolver|cusparse|cusparselt|nccl|nvjitlink|nvshmem|nvtx)(-cu1[0-9])?)$`)
	releaseNumber = regexp.MustCompile(`^(\d{1,4}(?:\.\d{1,4}){0,2})(?:\.\d{1,4}){0,2}((?:a|b|rc|\.dev|\.post)\d{1,8})?(?:\+(cu1\d\d|rocm\d\.\d|cpu|xpu)?.*)?$`)
	libraryText   = regexp.MustCompile(`^(lib[A-Za-z-]+)\.so((?:\.[0-9]{1,4})*)$`)
)

var forms = map[string]func(string) string{
	"word": func(s string) string { return kept(s, slices.Contains(words, s)) },
	"words": func(s string) string {
		return each(s, ",", func(w string) string { return kept(w, slices.Contains(words, w)) })
	},
	"version":   versionOf,
	"release":   releaseOf,
	"pci":       matching(pciText),
	"cpus":      matching(cpusText),
	"number":    matching(numberText),
	"workspace": matching(workspaceText),
	"node":      matching(nodeForm),
	"devices":   matching(devicesText),
	"key":       func(s string) string { return kept(s, slices.Contains(words, s)) },
	"code":      func(s string) string { return kept(s, slices.Contains(words, s)) },
	"card":      func(s string) string { return each(s, " ", modelOf) },
	"library":   func(s string) string { return each(s, ":", libraryOf) },
	"interface": interfacesOf,
	"cards":     cardsOf,
	"option":    optionOf,

	"place":          func(string) string { return "…" }, // that there is one
	"origin":         originOf,
	"package":        matching(packageText),
	"release-number": packageVersion,
	"specifier":      func(s string) string { return each(s, ",", specifierOf) },
}

func kept(s string, ok bool) string {
	if ok {
		return s
	}
	return ""
}

func matching(form *regexp.Regexp) func(string) string {
	return func(s string) string { return kept(s, form.MatchString(s)) }
}

// each puts the parts of a text into a form, and joins what is left.
func each(s, separator string, form func(string) string) string {
	var out []string
	for p := range strings.SplitSeq(s, separator) {
		if p = form(p); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, separator)
}

// versionOf keeps three numbers, of four the first two: that is also what an address of a network looks like.
func versionOf(s string) string {
	if m := versionText.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	if m := longVersion.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// releaseOf keeps the numbers of a kernel's release.
func releaseOf(s string) string {
	m := releaseText.FindStringSubmatch(s)
	if m == nil || m[2] == "" && strings.HasPrefix(s[len(m[1]):], ".") {
		return ""
	}
	return m[1] + m[2]
}

// modelOf keeps a part of a card's name: a word of makers, or letters and numbers as of models.
func modelOf(s string) string {
	return each(s, "-", func(p string) string { return kept(p, slices.Contains(makersWords, p) || modelText.MatchString(p)) })
}

// windowsFiles are those of the driver that probes look for.
var windowsFiles = []string{"nvcuda.dll", "nvml.dll", "nvidia-smi.exe"}

// libraryOf keeps the folders of systems, and the names of NVIDIA's libraries.
func libraryOf(s string) string {
	dir, base := path.Split(strings.ReplaceAll(s, `\`, "/"))
	if slices.Contains(windowsFiles, base) {
		if dir != "" {
			dir = "/…/"
		}
		return dir + base
	}
	if !libraryText.MatchString(base) {
		dir, base = s, ""
	}
	if m := libraryText.FindStringSubmatch(base); m != nil {
		switch {
		case !slices.Contains(libraryStems, m[1]):
			base = ""
		case strings.Count(m[2], ".") > 3: // as an address of a network has
			base = m[1] + ".so"
		}
	}
	known := !slices.ContainsFunc(strings.Split(strings.Trim(dir, "/"), "/"), func(p string) bool { return !slices.Contains(folderWords, p) && !cudaFolder.MatchString(p) })
	switch {
	case dir == "":
		return base
	case known:
		return path.Join(dir, base)
	case base == "":
		return ""
	}
	return path.Join("/…", base)
}

// originOf keeps how an environment was found, of a kernel that it is one.
func originOf(s string) string {
	if strings.HasPrefix(s, "kernel ") {
		return "kernel"
	}
	return kept(s, slices.Contains(origins, s))
}

var origins = []string{"VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "PATH, hidden", "./.venv", "./venv", "./env", "./.pixi/envs/default", "pyenv", "uv", "virtualenvwrapper", "poetry", "pipx", "conda", "process", "Python installation",
	"Python framework", "PYTHONPATH", "user site", "site-packages", ".pth file", "working directory"}

// packageVersion keeps three numbers of a package's version, that it is a preliminary one, and for what it was built: the fourth
// number would look like an address of a network.
func packageVersion(s string) string {
	m := releaseNumber.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	if m[3] != "" {
		m[3] = "+" + m[3]
	}
	return m[1] + m[2] + m[3]
}

// specifierOf is packageVersion of a version that is asked for.
func specifierOf(s string) string {
	v := strings.TrimLeft(s, "=!<>~")
	stem, wild := strings.CutSuffix(v, ".*")
	if stem = packageVersion(stem); stem == "" {
		return ""
	}
	if wild {
		stem += ".*"
	}
	if operator := s[:len(s)-len(v)]; slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "~="}, operator) {
		return operator + stem
	}
	return ""
}

// interfacesOf keeps the usual names, and "other" of others.
func interfacesOf(s string) string {
	mark := s[:len(s)-len(strings.TrimLeft(s, "^="))]
	if len(mark) > 2 {
		mark = ""
	}
	return mark + each(strings.TrimLeft(s, "^="), ",", func(p string) string {
		if interfaceText.MatchString(p) {
			return p
		}
		return "other"
	})
}

// cardsOf keeps numbers; names of cards become GPU-1, GPU-2 by their order, and anything else "other".
func cardsOf(s string) string {
	var seen []string
	return each(s, ",", func(p string) string {
		p = strings.TrimSpace(p)
		switch {
		case numberText.MatchString(p) || slices.Contains([]string{"all", "none", "void", "NoDevFiles"}, p):
			return p
		case strings.HasPrefix(p, "GPU-") || strings.HasPrefix(p, "MIG-"):
			if !slices.Contains(seen, p) {
				seen = append(seen, p)
			}
			return fmt.Sprintf("%s%d", p[:4], slices.Index(seen, p)+1)
		}
		return "other"
	})
}

// optionOf keeps an option of the kernel with a value of the list, or numbers of devices.
func optionOf(s string) string {
	name, v, has := strings.Cut(s, "=")
	if !slices.Contains(words, name) {
		return ""
	}
	if !has {
		return name
	}
	if slices.Contains(words, v) || idsText.MatchString(v) {
		return s
	}
	return name
}
