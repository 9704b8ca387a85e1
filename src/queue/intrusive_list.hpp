// SPDX-License-Identifier: Apache-2.0
// A doubly linked list whose links are members of the items, so that adding and removing an item allocates nothing.
#pragma once

#include <cstddef>

namespace warpcipher {

template <class T>
struct ListLinks {
  T* previous = nullptr;
  T* next = nullptr;
};

// `Member`: the links of a T for this list. The list does not own its items.
template <class T, ListLinks<T> T::*Member>
class IntrusiveList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  T* first() const noexcept { return first_; }

  void push_back(T& item) noexcept {
    item.*Member = {last_, nullptr};
    (last_ != nullptr ? (last_->*Member).next : first_) = &item;
    last_ = &item;
    ++size_;
  }

  void remove(T& item) noexcept {
    const ListLinks<T> links = item.*Member;
    (links.previous != nullptr ? (links.previous->*Member).next : first_) = links.next;
    (links.next != nullptr ? (links.next->*Member).previous : last_) = links.previous;
    --size_;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace warpcipher
