// Package memtest measures the memory of functions, and makes small inputs that become large ones.
// It is for tests only.
package memtest

import (
	"bytes"
	"compress/gzip"
	"runtime"
)

// Allocated returns the bytes that f allocates in all, those that were freed since included. It is
// no less than the memory in use at any time. Tests that use it do not run in parallel with others.
func Allocated(f func()) int64 {
	var a, b runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return int64(b.TotalAlloc - a.TotalAlloc)
}

// GzipZeros returns n zeros, compressed.
func GzipZeros(n int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for ; n > 0; n -= len(zeros) {
		w.Write(zeros[:min(n, len(zeros))])
	}
	w.Close()
	return b.Bytes()
}
