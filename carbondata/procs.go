package carbondata

import "runtime"

const (
	maxProcs  = 4       // goroutines that read or write columns of one page, or read pages, at most
	manyBytes = 1 << 16 // of a page that is read compressed; less is not worth a goroutine
)

// procs returns how many goroutines may work at once.
func procs() int { return min(runtime.GOMAXPROCS(0), maxProcs) }
