package hostmem

import "sync"

// Physical is the memory in bytes that this process may fill without being ended by the system, 0 where the system does
// not tell. It is read once.
var Physical = sync.OnceValue(physical)
