package main

import (
	"strconv"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/process"
	"github.com/oribi-db/oribi/bench/work"
)

// Flags of the client's virtual machine: a heap with room for the block cache, and the flags that
// HBase requires.
var flags = []string{"-Xmx1g", "--add-opens", "java.base/java.nio=ALL-UNNAMED", "--add-opens",
	"java.base/java.lang=ALL-UNNAMED"}

// open starts the client on a file, with a block cache unless cacheBytes is 0.
func open(home, log, file string, cacheBytes int) (*process.Program, error) {
	java, err := process.Java(home, flags...)
	if err != nil {
		return nil, err
	}
	p, err := process.StartProgram("HBase's reader", log, java)
	if err != nil {
		return nil, err
	}
	if _, err := p.Numbers(0, "open", file, strconv.Itoa(cacheBytes)); err != nil {
		p.End()
		return nil, err
	}
	return p, nil
}

// measure measures the reader on the file of a case.
func measure(
	c work.HFileCase, run func(env *harness.Env, file string, home string) (harness.Measurement, error),
) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (harness.Measurement, error) {
		home, err := process.Home()
		if err != nil {
			return harness.Measurement{}, err
		}
		return run(env, c.File(env), home)
	}
}

// scan makes the client scan until its compiler has warmed up, and then time its scans.
func scan(env *harness.Env, file, home string) (m harness.Measurement, err error) {
	c, err := open(home, env.Path("client.log"), file, 0)
	if err != nil {
		return m, err
	}
	defer c.End()
	env.Watch([]int{c.Cmd.Process.Pid})
	whole, err := c.Numbers(2, "check")
	if err != nil {
		return m, err
	}
	if _, err := c.Numbers(3, "scan", "2", millis(warmTimes*work.HFileEnough(env))); err != nil {
		return m, err
	}
	var got []int64
	if _, err := env.Clock(func() (err error) {
		got, err = c.Numbers(3, "scan", "2", millis(work.HFileEnough(env)))
		return err
	}); err != nil {
		return m, err
	}
	m.Value = float64(got[0]*whole[0]) / time.Duration(got[1]).Seconds()
	m.Checksum = work.HFileScanSum(whole[0], uint32(whole[1]), got[2])
	return m, nil
}

// warmTimes is the ratio of the warm-up time to the measured time.
const warmTimes = 3

// get makes the client read rows by key, likewise.
func get(env *harness.Env, file, home string) (m harness.Measurement, err error) {
	c, err := open(home, env.Path("client.log"), file, work.HFileCacheBytes)
	if err != nil {
		return m, err
	}
	defer c.End()
	env.Watch([]int{c.Cmd.Process.Pid})
	rows := work.HFileRows(env)
	if _, err := c.Ask(func() error {
		for _, row := range rows {
			if _, err := c.To.WriteString(row + "\n"); err != nil {
				return err
			}
		}
		return nil
	}, "rows", strconv.Itoa(len(rows))); err != nil {
		return m, err
	}
	warm, err := c.Numbers(2, "warm", millis(warmTimes*work.HFileEnough(env)))
	if err != nil {
		return m, err
	}
	var got []int64
	if _, err := env.Clock(func() (err error) {
		got, err = c.Numbers(2, "get", "16", millis(work.HFileEnough(env)))
		return err
	}); err != nil {
		return m, err
	}
	m.Value = time.Duration(got[1]).Seconds() * 1e6 / float64(got[0])
	m.Checksum = work.HFileGetSum(warm[0], warm[1])
	return m, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
