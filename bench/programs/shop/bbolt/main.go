// Command bbolt is examples/shop with bbolt.
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// User is a value in the bucket users.
type User struct {
	ID         int64
	Name, Mail string
}

// Item is a value in the bucket items.
type Item struct{ Price, Left int64 } // the price is in cents

// Order is a value in the bucket orders.
type Order struct {
	ID, User  int64
	Day, Item string
	Price     int64
}

// Keys of the buckets.
var (
	users  = []byte("users")   // by ID
	names  = []byte("names")   // name to ID
	mails  = []byte("mails")   // e-mail address to ID
	items  = []byte("items")   // by name
	orders = []byte("orders")  // by ID
	byUser = []byte("by_user") // user, day, and ID of an order, to nothing
)

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func (o *Order) place() []byte { return slices.Concat(number(o.User), []byte(o.Day), number(o.ID)) }

func get(b *bolt.Bucket, key []byte, value any) error {
	data := b.Get(key)
	if data == nil {
		return fmt.Errorf("no key %q", key)
	}
	return json.Unmarshal(data, value)
}

func put(b *bolt.Bucket, key []byte, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return b.Put(key, data)
}

var errTwice = errors.New("a name or an address twice")

// Shop is safe for concurrent use.
type Shop struct{ db *bolt.DB }

// AddUser adds a user. Errors: errTwice.
func (s *Shop) AddUser(u User) error {
	return s.db.Update(func(tx *bolt.Tx) error {
		name, mail := []byte(u.Name), []byte(u.Mail)
		if tx.Bucket(names).Get(name) != nil || tx.Bucket(mails).Get(mail) != nil {
			return errTwice
		}
		return errors.Join(tx.Bucket(names).Put(name, number(u.ID)), tx.Bucket(mails).Put(mail, number(u.ID)),
			put(tx.Bucket(users), number(u.ID), u))
	})
}

// AddItem adds an item.
func (s *Shop) AddItem(name string, item Item) error {
	return s.db.Update(func(tx *bolt.Tx) error { return put(tx.Bucket(items), []byte(name), item) })
}

// Buy sells an item on a day to the user with an e-mail address. It returns false if none is left.
func (s *Shop) Buy(mail, name string, day time.Time) (sold bool, err error) {
	err = s.db.Batch(func(tx *bolt.Tx) error { // many goroutines share a transaction
		var item Item
		if err := get(tx.Bucket(items), []byte(name), &item); err != nil {
			return err
		}
		if sold = item.Left > 0; !sold {
			return nil
		}
		user := tx.Bucket(mails).Get([]byte(mail))
		if user == nil {
			return fmt.Errorf("no user %q", mail)
		}
		id, err := tx.Bucket(orders).NextSequence()
		if err != nil {
			return err
		}
		item.Left--
		o := Order{int64(id), int64(binary.BigEndian.Uint64(user)), day.Format(time.DateOnly), name, item.Price}
		return errors.Join(put(tx.Bucket(items), []byte(name), item), put(tx.Bucket(orders), number(o.ID), o),
			tx.Bucket(byUser).Put(o.place(), nil))
	})
	return sold, err
}

// Next returns the first n orders of a user by day, after one of them.
func (s *Shop) Next(user int64, after Order, n int) (page []Order, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		after.User = user
		c := tx.Bucket(byUser).Cursor()
		key, _ := c.Seek(after.place())
		if bytes.Equal(key, after.place()) {
			key, _ = c.Next()
		}
		page, err = read(tx, key, user, n, c.Next)
		return err
	})
	return page, err
}

// Last returns the last n orders of a user before one of them, the newest first.
func (s *Shop) Last(user int64, before Order, n int) (page []Order, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		before.User = user
		c := tx.Bucket(byUser).Cursor()
		key, _ := c.Seek(before.place())
		if key == nil {
			key, _ = c.Last()
		} else {
			key, _ = c.Prev()
		}
		page, err = read(tx, key, user, n, c.Prev)
		return err
	})
	return page, err
}

// read returns the orders of a user at the keys of an index from one on.
func read(tx *bolt.Tx, key []byte, user int64, n int, next func() (key, value []byte)) (page []Order, err error) {
	for ; len(page) < n && bytes.HasPrefix(key, number(user)); key, _ = next() {
		var o Order
		if err := get(tx.Bucket(orders), key[len(key)-8:], &o); err != nil {
			return nil, err
		}
		page = append(page, o)
	}
	return page, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func main() {
	lamps := flag.Int("n", 1, "kinds of lamps: there are 100 of each, and each customer wants 10")
	if flag.Parse(); flag.NArg() != 1 {
		log.Fatal("usage: bbolt [-n N] FILE")
	}
	db := must(bolt.Open(flag.Arg(0), 0o600, nil))
	defer db.Close()
	db.MaxBatchSize, db.MaxBatchDelay = 16, time.Millisecond // the customers
	must(0, db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{users, names, mails, items, orders, byUser} {
			must(tx.CreateBucket(name))
		}
		return nil
	}))
	s := &Shop{db}
	ada, bob := User{1, "Ada", "ada@example.org"}, User{2, "Bob", "bob@example.org"}
	must(0, errors.Join(s.AddUser(ada), s.AddUser(bob)))
	for i := range *lamps {
		must(0, s.AddItem(fmt.Sprint("lamp ", i), Item{Price: 1990, Left: 100}))
	}
	err := s.AddUser(User{3, "Cyd", "bob@example.org"})
	fmt.Println("an address twice:", errors.Is(err, errTwice))

	var customers sync.WaitGroup
	end := Order{Day: "9999-12-31"} // after all days
	for i := range 16 {
		customers.Go(func() {
			user := []User{ada, bob}[i%2]
			for n := range 10 * *lamps {
				name, day := fmt.Sprint("lamp ", (i+n)%*lamps), time.Date(2026, 3, 1+n%31, 0, 0, 0, 0, time.UTC)
				must(s.Buy(user.Mail, name, day))
				must(s.Last(user.ID, end, 5))
			}
		})
	}
	customers.Wait()
	must(0, db.View(func(tx *bolt.Tx) error {
		var lamp Item
		err := get(tx.Bucket(items), []byte("lamp 0"), &lamp)
		fmt.Printf("wanted %d, sold %d, left %d\n", 160**lamps, tx.Bucket(orders).Stats().KeyN, lamp.Left)
		return err
	}))
	first := must(s.Next(1, Order{}, 5))
	second := must(s.Next(1, first[4], 5))
	back := must(s.Last(1, second[0], 5))
	slices.Reverse(back)
	fmt.Println("back on the first page:", slices.Equal(first, back), "of", len(back))
}
