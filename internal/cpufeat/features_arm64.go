package cpufeat

import "golang.org/x/sys/cpu"

func features() []string {
	a := &cpu.ARM64
	return present([]feature{
		{"asimd", a.HasASIMD}, {"asimdhp", a.HasASIMDHP}, {"asimddp", a.HasASIMDDP}, {"i8mm", a.HasI8MM},
		{"sve", a.HasSVE}, {"sve2", a.HasSVE2},
	})
}
