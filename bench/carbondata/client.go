package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/process"
	"github.com/oribi-db/oribi/bench/work"
)

// flags are the flags of the client's virtual machine: a heap with room for the rows to write, the
// time zone in which the SDK makes text of dates, and the packages that it opens by reflection.
func flags() []string {
	f := []string{"-Xmx2g", "-Duser.timezone=UTC"}
	for _, opened := range []string{"java.nio", "java.util", "sun.nio.ch", "jdk.internal.ref"} {
		f = append(f, "--add-opens", "java.base/"+opened+"=ALL-UNNAMED")
	}
	return f
}

// start starts the client.
func start(env *harness.Env) (*process.Program, error) {
	home, err := process.Home()
	if err != nil {
		return nil, err
	}
	java, err := process.Java(home, flags()...)
	if err != nil {
		return nil, err
	}
	p, err := process.StartProgram("CarbonData's SDK", env.Path("client.log"), java)
	if err == nil {
		env.Watch([]int{p.Cmd.Process.Pid})
	}
	return p, err
}

// warmTimes is the ratio of the warm-up time to the measured time.
const warmTimes = 3

// read makes the client scan until its compiler has warmed up, and then time its scans.
func read(env *harness.Env, reader string, r *work.CarbonRead) (m harness.Measurement, err error) {
	c, err := start(env)
	if err != nil {
		return m, err
	}
	defer c.End()
	names, err := r.Names()
	if err != nil {
		return m, err
	}
	open := func(columns []string, more ...string) error {
		_, err := c.Numbers(0,
			append([]string{"open", reader, work.CarbonFolder(env), strings.Join(columns, ",")}, more...)...)
		return err
	}
	if err := open(names[:1]); err != nil {
		return m, err
	}
	all, err := c.Numbers(2, "check")
	if err != nil {
		return m, err
	}
	var filter []string
	if r.Filtered {
		filter = []string{work.CarbonFiltered, strconv.Itoa(work.CarbonMost)}
	}
	if err := open(names, filter...); err != nil {
		return m, err
	}
	found, err := c.Numbers(2, "check")
	if err != nil {
		return m, err
	}
	scan := func(least time.Duration) ([]int64, error) {
		return c.Numbers(3, "scan", "2", strconv.FormatInt(least.Milliseconds(), 10))
	}
	if _, err := scan(warmTimes * work.CarbonEnough(env)); err != nil {
		return m, err
	}
	var got []int64
	if _, err := env.Clock(func() (err error) {
		got, err = scan(work.CarbonEnough(env))
		return err
	}); err != nil {
		return m, err
	}
	if got[2] != found[0] {
		return m, fmt.Errorf("a scan of %d rows, before %d", got[2], found[0])
	}
	m.Value = float64(got[0]*all[0]) / time.Duration(got[1]).Seconds()
	m.Checksum = work.CarbonSum(found[0], uint32(found[1]))
	return m, nil
}

// write makes the client write folders until its compiler has warmed up, and then one more.
func write(env *harness.Env) (m harness.Measurement, err error) {
	c, err := start(env)
	if err != nil {
		return m, err
	}
	defer c.End()
	if _, err := c.Numbers(1, "rows", work.CarbonText(env)); err != nil {
		return m, err
	}
	for i := range warmWrites {
		if _, err := c.Numbers(1, "write", env.Path(fmt.Sprint("warm-", i))); err != nil {
			return m, err
		}
	}
	dir := env.Path("written")
	var took []int64
	if _, err := env.Clock(func() (err error) {
		took, err = c.Numbers(1, "write", dir)
		return err
	}); err != nil {
		return m, err
	}
	return work.CarbonResult(filepath.Clean(dir), time.Duration(took[0]))
}

// warmWrites is the number of folders written before the timed one.
const warmWrites = 2
