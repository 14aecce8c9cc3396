//go:build linux

package cfile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/cache"
	"github.com/oribi-db/oribi/schema"
)

func threadCPU() time.Duration {
	var ru unix.Rusage
	unix.Getrusage(1, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func cpuOf(name string, n int, f func(i int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := threadCPU()
	for i := range n {
		f(i)
	}
	fmt.Printf("%-40s %8.1f cpu-ns/op\n", name, float64(threadCPU()-s)/float64(n))
}

func TestCPU(t *testing.T) {
	if os.Getenv("CPU") == "" {
		t.Skip()
	}
	b := &testing.B{}
	rng := rand.New(rand.NewPCG(1, 2))
	ords := make([]batch.Ordinal, 4096)
	for i := range ords {
		ords[i] = batch.Ordinal(rng.IntN(benchRows))
	}
	for _, c := range []struct {
		name  string
		o     WriterOptions
		nulls float64
	}{
		{"int64", WriterOptions{Type: schema.Int64}, 0},
		{"int64nulls", WriterOptions{Type: schema.Int64, Nullable: true}, 0.1},
		{"string", WriterOptions{Type: schema.String}, 0},
	} {
		c.o.PositionalIndex = true
		src := benchFile(b, c.o, c.nulls)
		r := open(b, src, cache.New(64<<20))
		for _, o := range ords {
			r.Cell(o)
		}
		cpuOf("cell "+c.name, 2000000, func(i int) { r.Cell(ords[i&4095]) })
		r = open(b, src, nil)
		v := &batch.Vector{Type: c.o.Type}
		cr := r.NewColumnReader()
		cpuOf("read window "+c.name, 256*20, func(i int) { cr.ReadVector(batch.Ordinal(i&255)*4096, 4096, v) })
		cr.ReadVector(0, benchRows, v)
		v.Materialize()
		for _, exact := range []bool{true, false} {
			o := c.o
			o.Exact = exact
			cpuOf(fmt.Sprint("write row ", c.name, exact), 3, func(i int) { writeAll(b, o, v) })
		}
	}
	v := batch.NewVector(schema.Binary, benchRows)
	for i := range v.Bytes {
		v.Bytes[i] = fmt.Appendf(nil, "customer%08d/order%04d", i/10, i%10)
	}
	src := writeAll(b, WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4, BlockBytes: 4096, ValueIndex: true, Exact: true}, v)
	r := open(b, src, cache.New(256<<20))
	for i := range v.Bytes {
		if i%64 == 0 {
			r.Seek(v.Bytes[i])
		}
	}
	cpuOf("seek", 1000000, func(i int) { r.Seek(v.Bytes[ords[i&4095]]) })
}

func TestCPUSeek(t *testing.T) {
	if os.Getenv("CPU") == "" {
		t.Skip()
	}
	v := batch.NewVector(schema.Binary, benchRows)
	for i := range v.Bytes {
		v.Bytes[i] = fmt.Appendf(nil, "customer%08d/order%04d", i/10, i%10)
	}
	src := writeAll(t, WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4, BlockBytes: 4096, ValueIndex: true, Exact: true}, v)
	r := open(t, src, cache.New(256<<20))
	for i := range v.Bytes {
		if i%64 == 0 {
			r.Seek(v.Bytes[i])
		}
	}
	x, _ := r.valueIndex()
	fmt.Println(len(x.blocks), "blocks")
	cpuOf("seek hot", 3000000, func(i int) { r.Seek(v.Bytes[(i&127)*7919]) })
	cpuOf("find hot", 3000000, func(i int) { r.find(x, v.Bytes[(i&127)*7919]) })
	b, _ := r.blockAt(x.blocks, 100)
	cpuOf("blockAt hot", 3000000, func(i int) { r.blockAt(x.blocks, 100) })
	c, _ := b.values.Cell(33)
	cpuOf("values.Seek hot", 3000000, func(i int) { b.values.Seek(c) })
}
