package hostmem

func mapAnonymous(n int) (uintptr, error) { return mapPages(n) }
