package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/bench/process"
)

// driver returns the Kudu peer for the programs that home names.
func driver(home func() (string, error)) peer.Driver {
	return peer.Driver{Name: "kudu", Lineitem: func(dir string) (peer.Lineitem, error) {
		h, err := home()
		if err != nil {
			return nil, err
		}
		return open(h, dir)
	}}
}

// lineitem is the table in a server. It is accessed through the program in client, which describes
// the protocol.
type lineitem struct {
	*servers
	client *process.Program
	key    []byte
	value  []byte
	read   inputs.Decoder
}

// clientMemory bounds the client's heap.
const clientMemory = "-Xmx512m"

// open starts the servers on dir, and the client, which opens or creates the table.
func open(home, dir string) (*lineitem, error) {
	l, err := start(home, dir)
	if err != nil {
		return nil, err
	}
	if _, err = l.ask(nil, "open", l.masterRPC); err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

// start starts the servers on dir, and the client. more are flags of the tablet server.
func start(home, dir string, more ...string) (*lineitem, error) {
	p, err := readPaths(home)
	if err != nil {
		return nil, err
	}
	s, err := startServers(p.servers, dir, more...)
	if err != nil {
		return nil, err
	}
	l := &lineitem{servers: s}
	if err := l.connect(p.classpath); err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

func (l *lineitem) connect(classpath string) (err error) {
	l.client, err = process.StartProgram("the client", filepath.Join(l.dir, "client.log"),
		exec.Command("java", clientMemory, "-cp", classpath, "Client"))
	return err
}

// end ends all processes.
func (l *lineitem) end() {
	l.client.End()
	l.stop()
}

// Sync makes all writes durable.
func (l *lineitem) Sync() error { return l.sync() }

// Close does the same and ends all processes.
func (l *lineitem) Close() error {
	err := l.sync()
	l.end()
	return err
}

// Processes returns the processes that do the work. The master is not included: it only provides an
// address, once.
func (l *lineitem) Processes() []int { return []int{l.tablet.Process.Pid, l.client.Cmd.Process.Pid} }

func (l *lineitem) FinishWork() error { return l.finishWork() }

// ask sends a request and the records that send writes, and returns the words of the answer.
func (l *lineitem) ask(send func() error, words ...string) ([]string, error) {
	records := send
	if send != nil {
		records = func() error {
			if err := send(); err != nil {
				return err
			}
			return l.record(nil, nil)
		}
	}
	return l.client.Ask(records, words...)
}

// record sends a record in the form of a file of rows. A record without a key is the last.
func (l *lineitem) record(key, value []byte) error {
	var lengths [8]byte
	binary.LittleEndian.PutUint32(lengths[:], uint32(len(key)))
	binary.LittleEndian.PutUint32(lengths[4:], uint32(len(value)))
	l.client.To.Write(lengths[:])
	l.client.To.Write(key)
	_, err := l.client.To.Write(value)
	return err
}

func (l *lineitem) sendItem(it *inputs.Item) error {
	l.key, l.value = it.AppendKey(l.key[:0]), it.AppendValue(l.value[:0])
	return l.record(l.key, l.value)
}

func (l *lineitem) sendKeys(keys []inputs.Key) func() error {
	return func() (err error) {
		for _, k := range keys {
			l.key = k.Append(l.key[:0])
			err = l.record(l.key, nil)
		}
		return err
	}
}

// rows reads the records of an answer.
func (l *lineitem) rows(use func(it *inputs.Item)) error {
	var it inputs.Item
	for {
		var lengths [8]byte
		if _, err := io.ReadFull(l.client.From, lengths[:]); err != nil {
			return l.client.Died()
		}
		k, v := int(binary.LittleEndian.Uint32(lengths[:])), int(binary.LittleEndian.Uint32(lengths[4:]))
		if k == 0 {
			return nil
		}
		record := make([]byte, k+v)
		if _, err := io.ReadFull(l.client.From, record); err != nil {
			return l.client.Died()
		}
		if err := l.read.Item(record[:k], record[k:], &it); err != nil {
			return err
		}
		use(&it)
	}
}

// Load uses a session that flushes in the background.
func (l *lineitem) Load(rows iter.Seq2[*inputs.Item, error], _ bool) error {
	_, err := l.ask(func() error {
		for it, err := range rows {
			if err == nil {
				err = l.sendItem(it)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, "load")
	return err
}

// Upsert uses one session, flushed once.
func (l *lineitem) Upsert(items []inputs.Item) error {
	_, err := l.ask(func() (err error) {
		for i := range items {
			err = l.sendItem(&items[i])
		}
		return err
	}, "upsert")
	return err
}

// UpdateTax uses one session, flushed once.
func (l *lineitem) UpdateTax(keys []inputs.Key, tax int64) error {
	_, err := l.ask(l.sendKeys(keys), "tax", strconv.FormatInt(tax, 10))
	return err
}

func (l *lineitem) Get(key inputs.Key, it *inputs.Item) (found bool, err error) {
	err = l.GetMany([]inputs.Key{key}, func(got *inputs.Item) { *it, found = *got, true })
	return found, err
}

func (l *lineitem) GetMany(keys []inputs.Key, use func(it *inputs.Item)) error {
	if _, err := l.ask(l.sendKeys(keys), "get"); err != nil {
		return err
	}
	return l.rows(use)
}

func (l *lineitem) Range(from inputs.Key, n int, use func(it *inputs.Item)) error {
	if _, err := l.ask(l.sendKeys([]inputs.Key{from}), "range", strconv.Itoa(n)); err != nil {
		return err
	}
	return l.rows(use)
}

// Query aggregates the rows in the client.
func (l *lineitem) Query(q peer.Question) (*peer.Answer, error) {
	words := []any{"query"}
	switch q {
	case peer.Sum:
		words = append(words, "sum", "l_partkey")
	case peer.FewRows:
		words = append(words, "below", "l_partkey", peer.FewBelow, "l_extendedprice")
	case peer.SomeRows:
		words = append(words, "below", "l_partkey", peer.SomeBelow, "l_extendedprice")
	case peer.NoRows:
		words = append(words, "equal", "l_quantity", peer.NoQuantity, "l_extendedprice")
	case peer.Group:
		words = append(words, "group")
	case peer.Q1:
		words = append(words, "q1", peer.Q1Until)
	case peer.Q6:
		words = append(words, "q6", peer.Q6From, peer.Q6Until, peer.Q6Least, peer.Q6Most, peer.Q6Below)
	}
	got, err := l.ask(nil, strings.Fields(fmt.Sprintln(words...))...)
	if err != nil {
		return nil, err
	}
	lines, err := l.number(got, 0)
	a := &peer.Answer{}
	for ; err == nil && lines > 0; lines-- {
		var line []byte
		if line, err = l.client.From.ReadBytes('\n'); err == nil {
			err = addGroup(a, line)
		}
	}
	return a, err
}

// addGroup parses a line of an answer: the group's key, a tab, its sums.
func addGroup(a *peer.Answer, line []byte) error {
	key, sums, _ := bytes.Cut(line, []byte("\t"))
	g := a.Group(string(key))
	for i, f := range bytes.Fields(sums) {
		v, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil || i >= len(g) {
			return fmt.Errorf("an answer of %q", line)
		}
		g[i] = v
	}
	return nil
}

func (l *lineitem) number(words []string, i int) (int64, error) {
	if i >= len(words) {
		return 0, fmt.Errorf("an answer of %d words", len(words))
	}
	return strconv.ParseInt(words[i], 10, 64)
}

// Warm sends the calls that Run makes later.
func (l *lineitem) Warm(call peer.Call, keys []inputs.Key, per int, enough time.Duration) (int64, error) {
	got, err := l.ask(l.sendKeys(keys), "warm", string(call), strconv.Itoa(per),
		strconv.FormatInt(enough.Milliseconds(), 10))
	if err != nil {
		return 0, err
	}
	return l.number(got, 0)
}

// Run makes the client run and time the calls.
func (l *lineitem) Run(least int, enough time.Duration) (calls int, took time.Duration, err error) {
	got, err := l.ask(nil, "run", strconv.Itoa(least), strconv.FormatInt(enough.Milliseconds(), 10))
	if err != nil {
		return 0, 0, err
	}
	n, err := l.number(got, 0)
	ns, err2 := l.number(got, 1)
	return int(n), time.Duration(ns), errors.Join(err, err2)
}
