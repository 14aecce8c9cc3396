package followers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// childRole is the environment variable that makes a program a child process of Processes: "writer"
// or "follower". childDir is its directory.
const (
	childRole = "ORIBI_FOLLOWERS_ROLE"
	childDir  = "ORIBI_FOLLOWERS_DIR"
)

// Child runs a child process of Processes if this is one, and reports whether it was. Programs that
// call Processes call Child first of all.
func Child() bool {
	role, dir := os.Getenv(childRole), os.Getenv(childDir)
	var err error
	switch role {
	case "":
		return false
	case "writer", "follower":
		var l *life
		if l, err = lifeOf(dir); err != nil {
			break
		}
		if role == "writer" {
			err = l.write()
		} else {
			err = l.follow()
		}
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Printf("failed: %v\n", err)
	}
	return true
}

// The store has two tables of ring rows. Write batch n, from 1, sets row n modulo ring of table a
// to n, and the same row of table b to −n. So one number determines the whole content.
const ring = 64

// acks is the file with the number of the last batch whose Commit has returned.
const acks = "acks"

// life is the life of a writer or a follower.
type life struct {
	ctx    context.Context // ends it
	fs     vfs.FS
	dir    string // of the store
	acked  func() (int64, error)
	ack    func(n int64) error
	pause  bool // the writer leaves time to others
	report func(c Counts)
}

// lifeOf is the life of a process, which ends by a kill.
func lifeOf(dir string) (*life, error) {
	f, err := os.OpenFile(filepath.Join(dir, acks), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &life{ctx: context.Background(), fs: vfs.OS, dir: filepath.Join(dir, "store"), pause: true,
		acked: func() (int64, error) { return acknowledged(f) },
		ack: func(n int64) error {
			_, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(n)), 0)
			return err
		},
		report: func(c Counts) { fmt.Printf("%d %d %d %d\n", c.Opens, c.Refreshes, c.TooOld, c.Locked) },
	}, nil
}

// write commits batches.
func (l *life) write() (err error) {
	ctx := context.Background()
	store, err := oribi.Open(l.dir,
		&oribi.Options{FS: l.fs, LogSegmentBytes: 1 << 17, FlushBytes: 1 << 17, History: 2 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64}}, 1)
	if err != nil {
		return err
	}
	var tables [2]*oribi.Table
	for i, name := range []string{"a", "b"} {
		if tables[i], err = store.Table(name); errors.Is(err, oribi.ErrNoTable) {
			tables[i], err = store.CreateTable(name, columns)
		}
		if err != nil {
			return err
		}
	}
	n, err := number(store)
	if err != nil {
		return fmt.Errorf("after a kill: %w", err)
	}
	if least, err := l.acked(); err != nil || n < least {
		return fmt.Errorf("after a kill the store has %d batches, acknowledged were %d: %w", n, least, errors.Join(err))
	}
	for n++; l.ctx.Err() == nil; n++ {
		b := store.NewBatch()
		b.Upsert(tables[0], oribi.Row{"k": n % ring, "v": n})
		b.Upsert(tables[1], oribi.Row{"k": n % ring, "v": -n})
		var opts []oribi.CommitOption
		if n%64 > 0 {
			opts = append(opts, oribi.NoSync)
		}
		if _, err := b.Commit(ctx, opts...); err != nil {
			return fmt.Errorf("batch %d: %w", n, err)
		}
		if err := l.ack(n); err != nil {
			return err
		}
		if l.pause && n%8 == 0 {
			time.Sleep(time.Millisecond)
		}
		if err := tend(ctx, store, tables, columns, n); err != nil {
			return fmt.Errorf("after batch %d: %w", n, err)
		}
	}
	return nil
}

// tend changes the metadata now and then.
func tend(ctx context.Context, store *oribi.Store, tables [2]*oribi.Table, columns *schema.Schema, n int64) error {
	switch t := tables[n&1]; {
	case n%97 == 0:
		return t.Flush(ctx)
	case n%151 == 0:
		_, err := t.FlushDeltas(ctx)
		return err
	case n%401 == 0:
		return t.Compact(ctx)
	case n%509 == 0:
		if _, err := store.Table("scratch"); err == nil {
			return store.DropTable("scratch")
		}
		_, err := store.CreateTable("scratch", columns)
		return err
	}
	return nil
}

// acknowledged returns the number of the last batch that was acknowledged, or 0.
func acknowledged(f *os.File) (int64, error) {
	var b [8]byte
	n, err := f.ReadAt(b[:], 0)
	if n == 0 && err == io.EOF {
		return 0, nil
	}
	if n < len(b) {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(b[:])), nil
}

// number returns the number of batches in a store, after a check of both tables.
func number(s *oribi.Store, opts ...oribi.ScanOption) (int64, error) {
	sn, err := s.Snapshot(context.Background())
	if err != nil {
		return 0, err
	}
	defer sn.Close()
	if len(opts) == 0 {
		opts = []oribi.ScanOption{oribi.At(sn)}
	}
	var numbers [2]int64
	for i, name := range []string{"a", "b"} {
		t, err := s.Table(name)
		if errors.Is(err, oribi.ErrNoTable) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if numbers[i], err = numberIn(t, int64(1-2*i), opts); err != nil {
			return 0, fmt.Errorf("table %s: %w", name, err)
		}
	}
	if numbers[0] != numbers[1] {
		return 0, fmt.Errorf("table a has %d batches, table b %d", numbers[0], numbers[1])
	}
	return numbers[0], nil
}

func numberIn(t *oribi.Table, sign int64, opts []oribi.ScanOption) (n int64, err error) {
	var values [ring]int64
	for cells, err := range t.Scan(context.Background(), opts...).Cells() {
		if err != nil {
			return 0, err
		}
		k, v := int64(binary.LittleEndian.Uint64(cells[0])), int64(binary.LittleEndian.Uint64(cells[1]))*sign
		if k < 0 || k >= ring || v <= 0 || v%ring != k {
			return 0, fmt.Errorf("row %d has %d", k, v)
		}
		values[k], n = v, max(n, v)
	}
	for m := max(n-ring+1, 1); m <= n; m++ {
		if values[m%ring] != m {
			return 0, fmt.Errorf("batch %d is there, but row %d is of batch %d, want %d", n, m%ring, values[m%ring], m)
		}
	}
	return n, nil
}

// looksOfOpen is how often a follower is looked at before it is opened again.
const looksOfOpen = 12

// follow opens and refreshes a follower.
func (l *life) follow() (err error) {
	ctx := context.Background()
	var c Counts
	var s *oribi.Store
	var past asOf
	defer func() {
		l.report(c)
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	seen, shown := int64(0), time.Now()
	for i := 0; l.ctx.Err() == nil; i++ {
		if now := time.Now(); now.Sub(shown) > 100*time.Millisecond {
			shown = now
			l.report(c)
		}
		if s != nil && i%looksOfOpen == 0 {
			closing := s
			s, past = nil, asOf{}
			if err := closing.Close(); err != nil {
				return err
			}
		}
		least, err := l.acked()
		if err != nil {
			return err
		}
		if s == nil {
			c.Opens++
			s, err = oribi.Open(l.dir, &oribi.Options{FS: l.fs, Follow: true})
		} else {
			c.Refreshes++
			err = s.Refresh(ctx)
		}
		switch {
		case errors.Is(err, oribi.ErrNotStore) && seen == 0: // not yet
			time.Sleep(time.Millisecond)
			continue
		case errors.Is(err, oribi.ErrLocked):
			c.Locked++
			continue
		case err != nil:
			return fmt.Errorf("look %d: %w", i, err)
		}
		n, err := number(s)
		switch {
		case errors.Is(err, oribi.ErrTooOld):
			c.TooOld++
			continue
		case err != nil:
			return fmt.Errorf("look %d: %w", i, err)
		case n < least, n < seen:
			return fmt.Errorf("look %d: %d batches, acknowledged were %d, seen %d", i, n, least, seen)
		}
		seen = n
		if err := past.check(s, i); err != nil {
			return fmt.Errorf("look %d: %w", i, err)
		}
	}
	return nil
}

// Rush runs a writer and followers at once in this process, in memory, for a time. Nothing pauses
// them.
func Rush(seed uint64, followers int, within time.Duration) (total Counts, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var last atomic.Int64
	l := life{ctx: ctx, fs: vfs.NewMem(), dir: storeDir, pause: seed%2 == 0,
		acked: func() (int64, error) { return last.Load(), nil },
		ack:   func(n int64) error { last.Store(n); return nil }}
	var mu sync.Mutex
	var running sync.WaitGroup
	ended := func(e error) {
		mu.Lock()
		defer mu.Unlock()
		if err = errors.Join(err, e); e != nil {
			cancel()
		}
	}
	counts := make([]Counts, followers)
	running.Go(func() { ended(l.write()) })
	for i := range counts {
		own := l
		own.report = func(c Counts) { counts[i] = c }
		running.Go(func() { ended(own.follow()) })
	}
	running.Wait()
	for _, c := range counts {
		total.Add(c)
	}
	return total, err
}

// asOf is an answer as of a timestamp, which must not change.
type asOf struct {
	ts mvcc.Timestamp
	n  int64
}

// check asks as of the present now and then, and once more later.
func (a *asOf) check(s *oribi.Store, look int) error {
	if look%looksOfOpen == 3 && look%(16*looksOfOpen) < looksOfOpen {
		ts := mvcc.FromTime(time.Now())
		n, err := number(s, oribi.AsOf(ts))
		if err == nil && n > 0 { // else there may have been no table that could be asked
			*a = asOf{ts, n}
		}
		return ignorable(err)
	}
	if a.ts == 0 || look%looksOfOpen < looksOfOpen-2 {
		return nil
	}
	n, err := number(s, oribi.AsOf(a.ts))
	if err == nil && n != a.n {
		return fmt.Errorf("as of %v there are %d batches, there were %d", a.ts, n, a.n)
	}
	return ignorable(err)
}

// ignorable returns err unless a read as of a timestamp may fail with it.
func ignorable(err error) error {
	if errors.Is(err, oribi.ErrTooOld) || errors.Is(err, oribi.ErrFuture) || errors.Is(err, oribi.ErrLocked) {
		return nil
	}
	return err
}

// child is a child process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when all of its output was read

	mu     sync.Mutex
	counts Counts
	failed string
}

func startChild(ctx context.Context, dir, role string) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, program), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var errs bytes.Buffer
	c.cmd.Stderr = &errs
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.done)
		c.read(out)
		c.cmd.Wait() // a kill is no failure
		if text := errs.String(); text != "" {
			c.fail(text)
		}
	}()
	return c, nil
}

func (c *child) fail(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == "" {
		c.failed = text
	}
}

// read reads the output of a process.
func (c *child) read(out io.Reader) {
	in := bufio.NewScanner(out)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		fields := strings.Fields(in.Text())
		if len(fields) != 4 || strings.HasPrefix(in.Text(), "failed") {
			c.fail(in.Text())
			continue
		}
		var n [4]int64
		for i := range n {
			n[i], _ = strconv.ParseInt(fields[i], 10, 64)
		}
		c.mu.Lock()
		c.counts = Counts{Opens: n[0], Refreshes: n[1], TooOld: n[2], Locked: n[3]}
		c.mu.Unlock()
	}
}

// kill ends the process and returns its counts.
func (c *child) kill(role string) (Counts, error) {
	c.cmd.Process.Kill()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != "" {
		return c.counts, fmt.Errorf("%s: %s", role, c.failed)
	}
	return c.counts, nil
}

// ended reports whether the process has ended by itself.
func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Processes runs a writer and followers in processes of their own for a time, on a store in dir on
// a real disk, and kills one of them after the other.
func Processes(dir string, seed uint64, followers int, within time.Duration) (total Counts, err error) {
	r := rand.New(rand.NewPCG(seed, 4805))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	list := make([]*child, 1+followers)
	role := func(i int) string {
		if i == 0 {
			return "writer"
		}
		return "follower"
	}
	defer func() {
		for i, c := range list {
			if c != nil {
				counts, kerr := c.kill(role(i))
				total.Add(counts)
				err = errors.Join(err, kerr)
			}
		}
	}()
	for i := range list {
		if list[i], err = startChild(ctx, dir, role(i)); err != nil {
			return total, err
		}
	}
	for begin := time.Now(); time.Since(begin) < within; {
		time.Sleep(time.Duration(20+r.IntN(300)) * time.Millisecond)
		i := 0
		if r.IntN(2) == 0 {
			i = r.IntN(len(list))
		}
		for j, c := range list {
			if c.ended() {
				return total, fmt.Errorf("%s %d has ended", role(j), j)
			}
		}
		counts, err := list[i].kill(role(i))
		total.Add(counts)
		total.Kills++
		if err != nil {
			return total, err
		}
		if list[i], err = startChild(ctx, dir, role(i)); err != nil {
			return total, err
		}
	}
	return total, nil
}
