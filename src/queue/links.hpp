// SPDX-License-Identifier: Apache-2.0
// A doubly linked list whose links lie in what it lists, so that taking something up or out of it allocates nothing.
#pragma once

#include <cstddef>

namespace warpcipher {

template <class T>
struct Links {
  T* before = nullptr;
  T* behind = nullptr;
};

// `Member`: the links of a T for this list. Owns nothing.
template <class T, Links<T> T::*Member>
class LinkedList {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  T* first() const noexcept { return first_; }

  void push_back(T& item) noexcept {
    item.*Member = {last_, nullptr};
    (last_ != nullptr ? (last_->*Member).behind : first_) = &item;
    last_ = &item;
    ++size_;
  }

  void remove(T& item) noexcept {
    const Links<T> links = item.*Member;
    (links.before != nullptr ? (links.before->*Member).behind : first_) = links.behind;
    (links.behind != nullptr ? (links.behind->*Member).before : last_) = links.before;
    --size_;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace warpcipher
