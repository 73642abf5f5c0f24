package cuda

// Loaded waits for the modules that are compiled ahead of use.
func Loaded(d *Device) { d.loading.Wait() }
