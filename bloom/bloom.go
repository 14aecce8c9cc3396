// Package bloom reads and writes bloom filters over the encoded keys of a rowset, in Kudu's file
// format.
//
// A filter reports that a key is absent or that it may be present. The first is always true; the
// second is reported for an absent key with a small probability. A bloom file has one filter for
// every 1,710 keys or so (4 KiB each at the default false-positive rate of one in ten thousand) and
// a value index with the first key of each filter: a lookup reads one filter. Keys are whole
// encoded keys, never prefixes.
//
//	w, err := bloom.NewWriter(sink, bloom.Options{})
//	for _, key := range keys { // ascending
//		err = w.Add(key)
//	}
//	err = w.Finish()
//
//	r, err := bloom.Open(src, cfile.ReaderOptions{Cache: c})
//	p := bloom.MakeProbe(key) // hashed once, used with many files
//	maybe, err := r.MayContain(p)
//
// A Writer is for use by one goroutine; a Reader may be used by many at once. A Probe aliases the
// key it was made from and is valid as long as the key.
//
// The file is a CFile (package cfile) of type BINARY, encoding PLAIN, without compression and with
// a value index only. Its cblocks are filters in the format described at filter, and its number of
// values is 0. Kudu caches the last four filters of each thread; here the cblock cache and the flat
// index of cfile.Reader serve all threads, at the cost of one cache lookup for each probe. Source:
// cfile spec §9.
package bloom

import (
	"github.com/oribi-db/oribi/internal/cityhash"
	"github.com/oribi-db/oribi/internal/fault"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrCorrupt: the bytes are not a valid bloom file.
	ErrCorrupt = fault.ErrCorrupt
	// ErrUnsupported: a CFile that is not a bloom file, or an unknown feature.
	ErrUnsupported = fault.ErrUnsupported
)

// Probe is a key with its hash, made once for lookups in many files.
type Probe struct {
	Key  []byte // encoded key; aliased, not copied
	hash uint64
}

// Hash returns the hash of the key.
func (p Probe) Hash() uint64 { return p.hash }

// MakeProbe returns the Probe of an encoded key.
func MakeProbe(key []byte) Probe { return Probe{Key: key, hash: cityhash.Hash64(key)} }
