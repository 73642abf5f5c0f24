package tables

import "io/fs"

// Folders are the texts that a release has compressed in one archive, from the root of the module: folders, or patterns of files.
// A package that reads its own has two files: embedded.go embeds them, without the tag, and packed.go takes them of [Folder].
func Folders() []string {
	return []string{
		"examples/lessons/l*.go", "examples/lessons/python/*.py", "examples/sim/sum*", "examples/sim/tour.*",
		"internal/exercise/_files", "internal/lab/assets", "internal/lesson/assets", "internal/lesson/text", "internal/live/page",
		"internal/simexec/libcuda/*.[ch]", "internal/simexec/libcuda/*.so", "internal/simexec/libcuda/build.sh",
		"internal/simrun/simgpu.py", "internal/vet/programs",
	}
}

// ArchiveFolders is the archive of what [Folders] names of a module.
func ArchiveFolders(module fs.FS) ([]byte, error) {
	var names []string
	for _, pattern := range Folders() {
		roots, err := fs.Glob(module, pattern)
		if err == nil && len(roots) == 0 {
			err = &fs.PathError{Op: "pack", Path: pattern, Err: fs.ErrNotExist}
		}
		for _, root := range roots {
			err = fs.WalkDir(module, root, func(name string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					names = append(names, name)
				}
				return err
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return Archive(module, names)
}
