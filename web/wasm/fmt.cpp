// fmt, compiled once: from its headers alone, every file would compile it again, which takes longer than most of ours.
#include <fmt/format-inl.h>

template auto fmt::detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(locale_ref) -> char;
template auto fmt::detail::dragonbox::to_decimal<float>(float) noexcept -> decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal<double>(double) noexcept -> decimal_fp<double>;
